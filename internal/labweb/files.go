// Package labweb has the files of the laboratory in the browser: a page, its script, its style and its worker, which are
// their own sources, and two that a build makes: the program (cmd/quoratelab as WebAssembly) and the runtime that Go's
// distribution has for it.
//
// The latter two are no part of the repository. `make lab` puts them into the directory page, from which the next build
// embeds them; a build without them works, and Files says that it has no laboratory. The package knows nothing of what the
// files do.
package labweb

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

//go:embed page
var embedded embed.FS

// The files that a build makes, in the directory that is embedded.
const (
	Dir     = "internal/labweb/page" // from the root of the repository
	Program = "lab.wasm.gz"
	Runtime = "wasm_exec.js"
)

// Policy is the Content-Security-Policy that the page and its worker need, as a header: 'wasm-unsafe-eval' lets a page compile
// WebAssembly, and no text as code. The page has the same in itself, but for frame-ancestors, which counts in a header alone.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; worker-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'; " +
	"require-trusted-types-for 'script'; trusted-types quorate-lab"

// ErrNotBuilt says that this program was built without the laboratory.
var ErrNotBuilt = errors.New("this build has no laboratory in it: `make lab` before the build puts it in, and " +
	"`quoratesim lab --out DIR` writes its files in a checkout")

// Static returns the files that are their own sources.
func Static() fs.FS {
	page, err := fs.Sub(embedded, "page")
	if err != nil {
		panic(err) // the name is a constant
	}
	return page
}

// Files returns all files of the laboratory, with index.html among them, or ErrNotBuilt.
func Files() (fs.FS, error) {
	page := Static()
	for _, name := range []string{Program, Runtime} {
		if _, err := fs.Stat(page, name); errors.Is(err, fs.ErrNotExist) {
			return nil, ErrNotBuilt
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return page, nil
}
