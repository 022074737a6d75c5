"""A trained run in a browser: what the page of `tfm export` and the page of `tfm explain` share.

engine.js   what tfm computes, in JavaScript: reads a packed model; runs in a page's worker and in node
client.js   a page's side of it: starts the worker, asks for work, hears the answers
pack        a run as bytes that engine.js reads
precision   the weights in 8 or 16 bits
embedded    all of it as text in one HTML file
node        runs engine.js outside a browser
"""
