package etcdbackup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// File is a snapshot, or a database that a stopped etcd left, open for reading.
type File struct {
	file   content
	size   int64 // without the checksum
	sealed bool  // the file ends with its checksum
	pages  *pages
}

type content interface {
	io.ReaderAt
	io.Closer
}

// Open opens a file. Whether its contents are what was saved, Verify says.
func Open(name string) (f *File, err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: name, Err: errNoFile} // to open a pipe may wait for ever
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f, err = nil, errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	f, err = openContent(file, info.Size())
	if err == nil && !f.sealed && inUse(file) {
		err = ErrInUse
	}
	return f, err
}

func openContent(file content, size int64) (*File, error) {
	f := &File{file: file, size: size}
	// A snapshot is pages of at least 512 bytes, and the checksum. A database has no checksum.
	if size%512 == sha256.Size {
		f.sealed, f.size = true, size-sha256.Size
	}
	var err error
	f.pages, err = openPages(file, f.size)
	return f, err
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Sealed reports whether the file ends with a checksum, as snapshots do.
func (f *File) Sealed() bool { return f.sealed }

// SizeBytes is the size of the file without its checksum.
func (f *File) SizeBytes() int64 { return f.size }

// Verify compares the file with the checksum at its end. It returns ErrNoHash or ErrHash.
func (f *File) Verify(ctx context.Context) error {
	if !f.sealed {
		return ErrNoHash
	}
	hash := sha256.New()
	content := io.NewSectionReader(f.file, 0, f.size)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := io.CopyN(hash, content, 16<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	var want [sha256.Size]byte
	if _, err := f.file.ReadAt(want[:], f.size); err != nil {
		return err
	}
	if got := hash.Sum(nil); !bytes.Equal(got, want[:]) {
		return fmt.Errorf("%w (expected sha256 %x, got %x)", ErrHash, want, got)
	}
	return nil
}

// Rows visits the rows of a bucket in the order of their keys; none if there is no such bucket. The slices are valid during
// the call.
func (f *File) Rows(ctx context.Context, name string, visit func(key, value []byte) error) error {
	return f.pages.buckets(func(found, bucket []byte) error {
		if string(found) != name {
			return nil
		}
		return f.pages.rows(bucket, watchful(ctx, visit))
	})
}

// watchful stops a walk when ctx ends.
func watchful(ctx context.Context, visit func(key, value []byte) error) func(key, value []byte) error {
	count := 0
	return func(key, value []byte) error {
		if count++; count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return visit(key, value)
	}
}
