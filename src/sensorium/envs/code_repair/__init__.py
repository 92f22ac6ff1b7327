"""Code repair: bugs in real packages, mended with tools, judged by the packages' own tests."""
