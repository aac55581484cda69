//go:build !unix

package dev

import (
	"fmt"
	"os"
	"path/filepath"
)

// lock opens the lock file. Without file locks it cannot keep a second process out; the ports still do.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}
