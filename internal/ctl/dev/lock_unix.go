//go:build unix

package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lock makes this process the only one that runs the cluster of a directory. The kernel drops it when the process
// ends in any way; the file stays, and holds the process's number for the message to the second one.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = errors.Join(f.Truncate(0), writePID(f))
		return f, err
	}
	holder := make([]byte, 20)
	n, _ := f.Read(holder)
	defer f.Close()
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return nil, &refusal{ErrLocked, fmt.Sprintf("the cluster in %s is running already (process %s): use it, or choose "+
		"another --dir and --base-port", dir, strings.TrimSpace(string(holder[:n])))}
}

func writePID(f *os.File) error {
	_, err := fmt.Fprintln(f, os.Getpid())
	return err
}
