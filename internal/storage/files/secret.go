package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// swaps is how often a directory may be replaced while a file in it is opened.
const swaps = 10

// OpenSecret opens a regular file for reading. Unlike Disk it follows links, as long as they lead to a place in the directory
// of the name or below: Kubernetes lays a Secret out so, NAME -> ..data/NAME and ..data -> ..TIME, and swaps ..data for a new
// one at any time.
func OpenSecret(name string) (*os.File, error) {
	for tried := 1; ; tried++ {
		file, err := openWithin(name)
		if !errors.Is(err, fs.ErrNotExist) || tried == swaps || !isLink(name) {
			return file, err
		}
	}
}

func isLink(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

func openWithin(name string) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(filepath.Base(name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // else a pipe waits for its writer
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: explained(name, err)}
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: name, Err: fmt.Errorf("it is %s, and no regular file", kindOf(info.Mode()))}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// explained says of a link what is wrong with it, beside the reason of an error.
func explained(name string, err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || !isLink(name) {
		return err
	}
	return fmt.Errorf("it is a symbolic link that leads out of its directory, or in a circle: name the file itself (%w)", err)
}

// allButOwner and the others are permissions of files.
const (
	allButOwner = 0o077
	groupReads  = 0o040
)

// IsSecret reports whether nobody may read or write a file but its owner, and, where root owns it, a group that this process is
// in may read it: a Secret in a volume of Kubernetes (fsGroup) has these permissions.
func IsSecret(info fs.FileInfo) bool {
	shared := info.Mode().Perm() & allButOwner
	return shared == 0 || shared == groupReads && lentToGroup(info)
}
