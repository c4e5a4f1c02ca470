"""One page about what agrees with PyTorch: `python -m compat_suite report`.

`build` puts the page together from `page.html`, `page.css` and `page.js`; nothing on it
is loaded from elsewhere.
"""
