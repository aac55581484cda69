package durable

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"

	"github.com/quorate/quorate/internal/base/env"
)

// ErrCorrupt means that a sealed file does not agree with its checksum.
var ErrCorrupt = errors.New("the checksum does not match: the file is damaged or was edited")

const (
	tempSuffix  = ".tmp"
	sealPrefix  = "crc32c "
	sealBytes   = len(sealPrefix) + 8 + 1
	dirPerm     = 0o700
	maxSealed   = 1 << 20
	rootOfNames = "."
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SyncDir makes creations, renames and removals of names in dir durable.
func SyncDir(fs env.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	if err := d.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync directory %s: %w", dir, err), d.Close())
	}
	return d.Close()
}

// MakeDir makes a directory and those above it. It syncs also what is there already: another process may have made it
// and not have lived to sync it.
func MakeDir(fs env.FS, dir string) error {
	parent := fs.PathDir(dir)
	if parent == dir || dir == rootOfNames {
		return nil
	}
	if err := MakeDir(fs, parent); err != nil {
		return err
	}
	_, err := fs.Stat(dir)
	existed := err == nil
	if errors.Is(err, os.ErrNotExist) {
		err = fs.MkdirAll(dir, dirPerm)
	}
	if err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	err = SyncDir(fs, parent)
	if existed && errors.Is(err, os.ErrPermission) {
		return nil // another user's directory, which this process may pass through but not open
	}
	return err
}

// WriteFile replaces the file at path, or makes it.
func WriteFile(fs env.FS, path string, content []byte) error {
	temp := path + tempSuffix
	err := writeSynced(fs, temp, content)
	if err == nil {
		err = fs.Rename(temp, path)
	}
	if err == nil {
		err = SyncDir(fs, fs.PathDir(path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func writeSynced(fs env.FS, path string, content []byte) error {
	file, err := fs.Create(path)
	if err != nil {
		return err
	}
	// The file system may modify what it is given.
	_, err = file.Write(append([]byte(nil), content...))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// WriteSealed is WriteFile of a text and a last line with its checksum.
func WriteSealed(fs env.FS, path, text string) error {
	return WriteFile(fs, path, []byte(text+seal(text)))
}

func seal(text string) string {
	return fmt.Sprintf("%s%08x\n", sealPrefix, crc32.Checksum([]byte(text), castagnoli))
}

// ReadSealed returns the text that WriteSealed was given.
func ReadSealed(fs env.FS, path string) (text string, err error) {
	file, err := fs.Open(path)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err := io.ReadAll(io.LimitReader(file, maxSealed))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	at := len(content) - sealBytes
	if at < 0 || !strings.HasPrefix(string(content[at:]), sealPrefix) || seal(string(content[:at])) != string(content[at:]) {
		return "", fmt.Errorf("read %s: %w", path, ErrCorrupt)
	}
	return string(content[:at]), nil
}
