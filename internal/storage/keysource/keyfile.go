package keysource

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/files"
)

// ReadKeyFile reads a file of keys (atrest.NewKeyFile) of the machine. It refuses a file that others may read than its owner
// and, of root's, a group of this process. A link must lead to a place below its directory.
func ReadKeyFile(name string) (*atrest.KeyFile, error) {
	content, err := ReadSecret(name, atrest.MaxKeyFile)
	if err != nil {
		return nil, err
	}
	return atrest.NewKeyFile(name, content)
}

// ReadSecret reads a file with secrets of the machine, and one byte more than most if there are more. It refuses what
// ReadKeyFile refuses.
func ReadSecret(name string, most int64) (content []byte, err error) {
	file, err := files.OpenSecret(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !files.IsSecret(info) && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s: others than its owner may read or write the file (mode %04o): make it 0400, or 0440 where "+
			"root owns it and the group is this process's (in Kubernetes: defaultMode 0400 of the Secret's volume, with "+
			"fsGroup), and draw another key if one of them may have read it", name, info.Mode().Perm())
	}
	if content, err = io.ReadAll(io.LimitReader(file, most+1)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return content, nil
}
