"""A trained run as one HTML page, which works for ever in any browser, without a network and without tfm.

    engine.js   what tfm computes, in JavaScript: reads a packed model; runs in a page's worker and in node
    page.html, page.css, page.js   what a reader sees
    pack        a run as bytes that engine.js reads
    precision   the weights in 8 or 16 bits, and what that costs
    page        the page around them
    node        runs engine.js outside a browser
    compare     both do the same work, and how far they agree

All modules are imported by `tfm export` alone. An export needs no JavaScript engine; comparing it does.
"""
