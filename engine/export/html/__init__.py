"""A trained run as one HTML page, which works for ever in any browser, without a network and without tfm.

    page.html, page.css, page.js   what a reader sees, around the engine of `engine/browser`
    page        the page as a file
    quality     what weights in 8 or 16 bits cost
    compare     run and page do the same work, and how far they agree

All modules are imported by `tfm export` alone. An export needs no JavaScript engine; comparing it does.
"""
