"""One page about what agrees with PyTorch: `python -m compat_suite report`.

`build` puts the page together from `page.html`, `page.css` and the scripts (`tables.js`
for the databases, `curves.js` for scripts, `page.js` for the rest); nothing on it is
loaded from elsewhere.
"""
