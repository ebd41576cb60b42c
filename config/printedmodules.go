package config

import (
	"slices"
	"strings"
)

// pythonModules are the modules of Python's own library, of 3.8 and newer. Beside a
// script, or in the directory that a script without a file is started in, a file by
// such a name stands for the module, whoever takes it in: json takes in re, and an
// error that nobody catches takes in traceback.
var pythonModules = strings.Fields(`
	abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile
	calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall compression concurrent configparser contextlib contextvars
	copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest dummy_threading email encodings
	ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch formatter fractions ftplib functools gc genericpath getopt getpass
	gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json
	keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing
	netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev parser pathlib pdb pickle pickletools pipes
	pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri
	random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib
	sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess
	sunau symbol symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit tkinter token
	tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave
	weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo annotationlib sitecustomize usercustomize`)

// anyModule stands for what Python takes in, among the files that are run.
const anyModule = "*.py"

// shadowed reports whether something may lie in a directory that Python takes for one
// of its own modules.
func (p project) shadowed(dir string) bool {
	if p.names == nil {
		return true
	}
	names, ok := p.names(dir)
	return !ok || shadows(names)
}

// shadows reports whether one of the names in a directory is a module's. Those that
// begin with one underscore are parts of others.
func shadows(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		module, _, _ := strings.Cut(name, ".")
		return strings.HasPrefix(module, "_") && !strings.HasPrefix(module, "__") || slices.Contains(pythonModules, module)
	})
}
