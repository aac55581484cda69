package atrest

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/quorate/quorate/internal/base/env"
)

// errInPlace refuses what would use a key stream twice.
var errInPlace = errors.New("an encrypted file cannot be written in place")

// FS is a file system whose files are encrypted on the one below. Their sizes and places are those of the content.
//
// A file that is shorter than a head is empty: that is how a power loss leaves a file that was just made.
type FS struct {
	env.FS
	ring *Ring
}

// NewFS returns the file system below with all files encrypted under keys of the ring.
func NewFS(below env.FS, ring *Ring) *FS { return &FS{below, ring} }

// Create implements env.FS. The file has the data key that is active now.
func (f *FS) Create(name string) (env.File, error) {
	key := f.ring.Active()
	h := head{key: key.ID, salt: NewSalt()}
	file, err := f.FS.Create(name)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(h.append(nil)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	block := key.derive(h.salt[:], fileUse)
	return &File{file: file, block: block, stream: streamAt(block, 0)}, nil
}

// Open implements env.FS.
func (f *FS) Open(name string) (env.File, error) { return f.opened(name, f.FS.Open) }

// OpenSequential implements env.FS.
func (f *FS) OpenSequential(name string) (env.File, error) {
	return f.opened(name, f.FS.OpenSequential)
}

// OpenReadWrite implements env.FS: it refuses.
func (f *FS) OpenReadWrite(name string) (env.File, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: errInPlace}
}

func (f *FS) opened(name string, open func(string) (env.File, error)) (env.File, error) {
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	block, err := f.readHead(file)
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "open", Path: name, Err: err}, file.Close())
	}
	opened := &File{file: file, block: block}
	if block != nil {
		opened.stream = streamAt(block, 0)
	}
	return opened, nil
}

// readHead returns the key of a file, or nil if it has none yet.
func (f *FS) readHead(file env.File) (cipher.Block, error) {
	var src [headBytes]byte
	switch _, err := io.ReadFull(file, src[:]); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the head: %w", err)
	}
	h, err := parseHead(src[:])
	if err != nil {
		return nil, err
	}
	key, err := f.ring.Find(h.key)
	if err != nil {
		return nil, err
	}
	return key.derive(h.salt[:], fileUse), nil
}

// Stat implements env.FS.
func (f *FS) Stat(name string) (os.FileInfo, error) { return contentOf(f.FS.Stat(name)) }

func contentOf(info os.FileInfo, err error) (os.FileInfo, error) {
	if err != nil || info.IsDir() {
		return info, err
	}
	return contentInfo{info}, nil
}

// contentInfo describes a file without its head.
type contentInfo struct{ os.FileInfo }

// Size implements os.FileInfo.
func (i contentInfo) Size() int64 { return max(i.FileInfo.Size()-headBytes, 0) }

// File is a file of an FS.
type File struct {
	file   env.File
	block  cipher.Block  // nil: the file has no head, and so no content
	stream cipher.Stream // of where the last Read or Write ended
	failed error         // of a Write: where the file ends is not known any more
}

// Under returns the file below, and how many bytes of it lie before the content.
func (f *File) Under() (below env.File, head int64) { return f.file, headBytes }

// Read implements io.Reader.
func (f *File) Read(p []byte) (int, error) {
	if f.block == nil {
		return 0, io.EOF
	}
	n, err := f.file.Read(p)
	f.stream.XORKeyStream(p[:n], p[:n])
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, offset int64) (int, error) {
	switch {
	case offset < 0:
		return 0, errors.New("atrest: read before the beginning of a file")
	case f.block == nil && len(p) == 0:
		return 0, nil
	case f.block == nil:
		return 0, io.EOF
	}
	n, err := f.file.ReadAt(p, offset+headBytes)
	streamAt(f.block, offset).XORKeyStream(p[:n], p[:n])
	return n, err
}

// Write implements io.Writer. It changes the bytes that it is given, as env.File allows.
func (f *File) Write(p []byte) (int, error) {
	if f.failed != nil {
		return 0, f.failed
	}
	if f.block == nil {
		return 0, errInPlace // opened for reading
	}
	f.stream.XORKeyStream(p, p)
	n, err := f.file.Write(p)
	if err != nil {
		f.failed = err // the key stream is ahead of the file
	}
	return n, err
}

// WriteAt implements io.WriterAt: it refuses.
func (*File) WriteAt([]byte, int64) (int, error) { return 0, errInPlace }

// Close implements io.Closer.
func (f *File) Close() error { return f.file.Close() }

// Preallocate implements env.File.
func (f *File) Preallocate(offset, length int64) error {
	return f.file.Preallocate(offset+headBytes, length)
}

// Stat implements env.File.
func (f *File) Stat() (os.FileInfo, error) { return contentOf(f.file.Stat()) }

// Sync implements env.File.
func (f *File) Sync() error { return f.file.Sync() }

// SyncData implements env.File.
func (f *File) SyncData() error { return f.file.SyncData() }
