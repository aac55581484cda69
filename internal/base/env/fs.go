package env

import (
	"errors"
	"io"
	"os"
)

// ErrNoDiskUsage is the error of a file system that has no disk of a size.
var ErrNoDiskUsage = errors.New("env: the file system cannot tell how full its disk is")

// FS is the only way to the disk: a tree of directories and files.
//
// Errors are those of package os: errors.Is tells os.ErrNotExist, os.ErrExist and os.ErrPermission, and the errors of package
// syscall where there is one, such as ENOSPC. All sizes and offsets are in bytes. Methods may be called from any goroutine,
// unless an implementation says otherwise.
//
// Durability: a change of a name (Create, Link, Remove, RemoveAll, Rename, MkdirAll) is durable once the directory that holds
// the name was synced: OpenDir, then Sync. Until then a power loss may undo the change, and keep a later one. A Rename within
// one directory is atomic: after a power loss newname is the old file or the new one. The content of a file is durable once the
// file was synced. A new file needs both syncs.
type FS interface {
	// Create makes an empty file and opens it for reading and writing. A file of that name is removed first: its content stays
	// for those that have it open, or have another link to it.
	Create(name string) (File, error)

	// Open opens a file for reading.
	Open(name string) (File, error)

	// OpenSequential is Open for a caller that reads the file from its beginning to its end: the system may read ahead.
	OpenSequential(name string) (File, error)

	// OpenReadWrite opens a file for reading and writing, and makes it if there is none. It cuts nothing.
	OpenReadWrite(name string) (File, error)

	// OpenDir opens a directory in order to sync it.
	OpenDir(name string) (File, error)

	// Link gives a file a second name. It fails if newname exists, or if the file system has no links.
	Link(oldname, newname string) error

	// Rename gives a file or a directory another name. A file that is called newname is replaced.
	Rename(oldname, newname string) error

	// Remove removes a file or an empty directory.
	Remove(name string) error

	// RemoveAll removes a file, or a directory with all that it holds. It is not atomic. A missing name is no error.
	RemoveAll(name string) error

	// MkdirAll makes a directory, and those above it that are missing, with these permissions. One that exists is no error.
	MkdirAll(name string, perm os.FileMode) error

	// Lock makes the file, empties it, and takes the exclusive lock on it, which other processes respect. It fails at once if
	// the lock is taken, also by this process under the same name. Close of the result gives the lock up; so does the end of
	// the process, and on some systems the Close of any other open file of that name.
	Lock(name string) (io.Closer, error)

	// List returns the names in a directory, without the directory's own, in any order.
	List(name string) ([]string, error)

	// Stat describes a file or a directory.
	Stat(name string) (os.FileInfo, error)

	// DiskUsage tells how full the disk is that a file or a directory lies on. The error is ErrNoDiskUsage if this file system
	// never can tell. An operating system that does not tell is another error: how full the disk is, is not known then.
	DiskUsage(name string) (DiskUsage, error)

	// PathBase, PathDir and PathJoin are filepath.Base, filepath.Dir and filepath.Join by the rules of this file system.
	PathBase(name string) string
	PathDir(name string) string
	PathJoin(elements ...string) string
}

// File is an open file or directory. Calls of ReadAt may run beside each other and beside one other call; all other calls come
// one at a time. Of a directory only Stat, Sync and Close work.
type File interface {
	// Read goes on where the last Read or Write of this File ended; io.EOF is the end.
	io.Reader
	// ReadAt reads at an offset; io.EOF tells that the file ends before the buffer is full.
	io.ReaderAt
	// Write goes on where the last Read or Write of this File ended. It may change the bytes that it is given.
	io.Writer
	// WriteAt writes at an offset, in a file that was opened by OpenReadWrite. Bytes between the end of the file and the
	// offset read as zeros. It does not change the bytes that it is given.
	io.WriterAt
	// Close makes nothing durable.
	io.Closer

	// Preallocate reserves space, so that later writes there need none. It changes neither the length of the file nor its
	// content, and may do nothing. A file system that cannot reserve may say so by syscall.EOPNOTSUPP or syscall.ENOSYS.
	Preallocate(offset, length int64) error

	// Stat describes the file.
	Stat() (os.FileInfo, error)

	// Sync returns once all that was written is durable, with the metadata of the file. Of a directory: all names in it. After
	// an error it is unknown which bytes are durable, also if the next Sync succeeds: the system may have dropped those that it
	// could not write.
	Sync() error

	// SyncData is Sync without the metadata that no reader of the content needs, such as the time of the last change. The
	// length of the file is durable, too.
	SyncData() error
}

// DiskUsage tells how full a disk is, in bytes.
type DiskUsage struct {
	AvailBytes uint64 // this process may still write so many
	TotalBytes uint64
	UsedBytes  uint64 // less than TotalBytes-AvailBytes where the system keeps some for itself
}
