package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/quorate/quorate/internal/base/env"
)

const copyBytes = 256 << 10

// Build makes dir, which it first empties, a snapshot of what an engine holds now. checkpoint, the engine's, is called
// first and takes milliseconds; reading its files for the checksums comes after, and needs no engine. The result need
// not survive a crash and is not synced. After an error nothing is left.
func Build(checkpoint func(dir string) error, fs env.FS, dir string) error {
	if err := errors.Join(fs.RemoveAll(dir), fs.MkdirAll(fs.PathDir(dir), 0o755)); err != nil {
		return fmt.Errorf("snapshot: prepare %s: %w", dir, err)
	}
	err := checkpoint(dir)
	if err == nil {
		err = seal(fs, dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot: build %s: %w", dir, err), fs.RemoveAll(dir))
	}
	return nil
}

// seal writes the manifest of the files in dir.
func seal(fs env.FS, dir string) error {
	names, err := listFiles(fs, dir)
	if err != nil {
		return err
	}
	var m Manifest
	buffer := make([]byte, copyBytes)
	for _, name := range names {
		f := File{Name: name}
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			return err
		}
		if info.IsDir() || !validName(name) {
			return fmt.Errorf("unexpected %q in a checkpoint", name)
		}
		if f.Size, f.Sum, err = copyFile(fs, path, io.Discard, -1, buffer); err != nil {
			return err
		}
		m.Files = append(m.Files, f)
	}
	return writeFile(fs, fs.PathJoin(dir, manifestName), m.append(nil))
}

// copyFile copies a file into w, the whole of it if limit is negative, and sums what it copies.
func copyFile(fs env.FS, path string, w io.Writer, limit int64, buffer []byte) (size int64, sum uint32, err error) {
	file, err := fs.OpenSequential(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for size != limit {
		piece := buffer
		if limit >= 0 {
			piece = buffer[:min(int64(len(buffer)), limit-size)]
		}
		n, err := file.Read(piece)
		sum = crc32.Update(sum, castagnoli, piece[:n])
		size += int64(n)
		if n > 0 {
			if _, err := w.Write(piece[:n]); err != nil {
				return size, sum, err
			}
		}
		if errors.Is(err, io.EOF) {
			return size, sum, nil
		}
		if err != nil {
			return size, sum, err
		}
	}
	return size, sum, nil
}

// Write streams the snapshot in dir. It checks the files against the manifest on the way, so that a disk that lost
// a byte since Build does not pass it on: the stream then lacks its end, and no receiver accepts it.
func Write(w io.Writer, fs env.FS, dir string) error {
	m, err := loadManifest(fs, dir)
	if err != nil {
		return err
	}
	if _, err := w.Write(m.append(nil)); err != nil {
		return err
	}
	buffer := make([]byte, copyBytes)
	for _, f := range m.Files {
		size, sum, err := copyFile(fs, fs.PathJoin(dir, f.Name), w, f.Size, buffer)
		if err != nil {
			return fmt.Errorf("snapshot: write %s: %w", f.Name, err)
		}
		if size != f.Size || sum != f.Sum {
			return fmt.Errorf("%w: %s changed since the snapshot was built", ErrCorrupt, f.Name)
		}
	}
	_, err = io.WriteString(w, streamEnd)
	return err
}

// isImmutable tells whether a file is one that no engine ever modifies: a table, or values that lie apart from it.
func isImmutable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// Clone makes view, which must not exist, a copy of the snapshot in dir that may be opened as a store. Files that
// no engine ever modifies are linked where the file system can; so a clone costs next to nothing.
func Clone(fs env.FS, dir, view string) error {
	m, err := loadManifest(fs, dir)
	if err != nil {
		return err
	}
	if err := fs.MkdirAll(view, 0o755); err != nil {
		return fmt.Errorf("snapshot: clone %s: %w", dir, err)
	}
	for _, f := range m.Files {
		from, to := fs.PathJoin(dir, f.Name), fs.PathJoin(view, f.Name)
		if isImmutable(f.Name) && fs.Link(from, to) == nil {
			continue
		}
		if err := duplicate(fs, from, to); err != nil {
			return errors.Join(fmt.Errorf("snapshot: clone %s: %w", f.Name, err), fs.RemoveAll(view))
		}
	}
	return nil
}

// duplicate makes the file at to a copy of the one at from, and syncs its content.
func duplicate(fs env.FS, from, to string) (err error) {
	source, err := fs.OpenSequential(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := fs.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if _, err := io.Copy(target, source); err != nil {
		return err
	}
	return target.Sync()
}
