package httpapi

import (
	"bytes"
	"net/http"
)

// kept is an answer that is not sent to a client yet.
type kept struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(code int) { k.code = code }

// Write implements http.ResponseWriter.
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }

func (k *kept) send(w http.ResponseWriter) {
	w.WriteHeader(k.code)
	_, _ = w.Write(k.body.Bytes()) // a client that has gone concerns no other
}
