package console

import (
	"bytes"
	"embed"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assets embed.FS

// types are those of the files of a page. The files are those that people wrote: nothing is built.
var types = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// serveAsset serves a file that pages have in common.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	serveFile(w, r, assets, "assets/"+r.PathValue("name"))
}

// serveFile serves a file of the build, of a kind that is known.
func serveFile(w http.ResponseWriter, r *http.Request, files fs.FS, name string) {
	kind, known := types[path.Ext(name)]
	contents, err := fs.ReadFile(files, name)
	if !known || err != nil {
		http.Error(w, "The console has no such file.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(contents))
}
