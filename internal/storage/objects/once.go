package objects

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// PutOnce puts an object, and takes one that is there already with the same bytes for its own, also after an error that leaves
// open whether the object is there. It returns ErrExists if the name has other bytes: two writers gave one name to different
// contents, or somebody changed the object. After any other error the caller may call again.
func PutOnce(ctx context.Context, store Store, name string, body io.ReadSeeker, size int64) error {
	err := store.Put(ctx, name, body, size)
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrName) {
		return err
	}
	same, compared := Compare(ctx, store, name, body, size)
	switch {
	case same && compared == nil:
		return nil
	case compared == nil:
		return fmt.Errorf("%s: %w, with other bytes", name, ErrExists)
	case !errors.Is(err, ErrExists):
		return err
	case errors.Is(compared, ErrNotFound):
		return fmt.Errorf("%s: %w: it says that the name is taken, and has no such object", name, ErrBusy)
	}
	return fmt.Errorf("%s is there, and could not be read back: %w", name, compared)
}

// Patient is a body whose Read waits, so that only so many bytes pass in a second. ReadAhead reads as Read does, and does not
// wait.
type Patient interface {
	ReadAhead(p []byte) (int, error)
}

// Ahead returns a reader of a body that does not wait: for places that read a body before they send it.
func Ahead(body io.Reader) io.Reader {
	if p, ok := body.(Patient); ok {
		return ahead{p}
	}
	return body
}

type ahead struct{ Patient }

// Read implements io.Reader.
func (a ahead) Read(p []byte) (int, error) { return a.ReadAhead(p) }

// Compare reports whether an object has the bytes of a body: it reads all of both, and holds none of them.
func Compare(ctx context.Context, store Store, name string, body io.ReadSeeker, size int64) (same bool, err error) {
	info, err := store.Stat(ctx, name)
	if err != nil || info.Size != size {
		return false, err
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	want := sha256.New()
	if n, err := io.Copy(want, io.LimitReader(body, size)); err != nil || n != size {
		return false, errors.Join(err, fmt.Errorf("a body of %d bytes has %d", size, n))
	}
	there, err := store.Get(ctx, name, 0, -1)
	if err != nil {
		return false, err
	}
	got := sha256.New()
	n, err := io.Copy(got, io.LimitReader(there, size+1))
	if err := errors.Join(err, there.Close()); err != nil {
		return false, err
	}
	return n == size && [sha256.Size]byte(got.Sum(nil)) == [sha256.Size]byte(want.Sum(nil)), nil
}
