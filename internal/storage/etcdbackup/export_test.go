package etcdbackup

import (
	"bytes"
	"io"
)

// OpenBytes opens a file in memory.
func OpenBytes(file []byte) (*File, error) {
	return openContent(struct {
		io.ReaderAt
		io.Closer
	}{bytes.NewReader(file), io.NopCloser(nil)}, int64(len(file)))
}
