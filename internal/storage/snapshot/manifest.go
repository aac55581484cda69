package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/env"
)

// File is one file of a snapshot.
type File struct {
	Name string
	Size int64
	Sum  uint32 // CRC32C of the content
}

// Manifest names everything a snapshot consists of, sorted by name.
type Manifest struct{ Files []File }

// SizeBytes is the size of all files.
func (m Manifest) SizeBytes() int64 {
	total := int64(0)
	for _, f := range m.Files {
		total += f.Size
	}
	return total
}

// The manifest is encoded as
//
//	0       8          12        16              16+length    20+length
//	+-------+----------+---------+---------------+------------+
//	| magic | version  | length  | files ...     | CRC32C     |
//	+-------+----------+---------+---------------+------------+
//
// and each file as name length (uvarint), name, size (uvarint), sum (4 bytes). The checksum covers all before it.
// The same bytes open the stream; the files follow in order without padding, and streamEnd closes it.
const (
	manifestMagic   = "QRTSNAP\n"
	formatVersion   = 1
	manifestHead    = 16
	maxManifestSize = 4 << 20 // of some 200,000 files
	streamEnd       = "QRTSNEND"
	manifestName    = "SNAPSHOT"
)

// A snapshot has at most fewFiles, and one more for each fileBytes of all: a store has few that are smaller, and each takes the
// disk to make.
const (
	fewFiles  = 4096
	fileBytes = 64 << 10
)

// check returns why a snapshot is not taken.
func (m *Manifest) check() error {
	if most := fewFiles + m.SizeBytes()/fileBytes; int64(len(m.Files)) > most {
		return fmt.Errorf("%w: %d files for %d bytes", ErrCorrupt, len(m.Files), m.SizeBytes())
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (m Manifest) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, manifestMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, formatVersion)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	for _, f := range m.Files {
		dst = binary.AppendUvarint(dst, uint64(len(f.Name)))
		dst = append(dst, f.Name...)
		dst = binary.AppendUvarint(dst, uint64(f.Size))
		dst = binary.LittleEndian.AppendUint32(dst, f.Sum)
	}
	binary.LittleEndian.PutUint32(dst[start+12:], uint32(len(dst)-start-manifestHead))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// readManifest reads a manifest from the front of r. It believes no length before the bytes are there.
func readManifest(r io.Reader) (Manifest, error) {
	encoded := make([]byte, manifestHead, 4<<10)
	if _, err := io.ReadFull(r, encoded); err != nil {
		return Manifest{}, cutShort(err)
	}
	if string(encoded[:len(manifestMagic)]) != manifestMagic {
		return Manifest{}, fmt.Errorf("%w: no snapshot begins like this", ErrForeign)
	}
	switch version := binary.LittleEndian.Uint32(encoded[8:]); {
	case version > formatVersion:
		return Manifest{}, fmt.Errorf("%w: version %d, this program knows %d", ErrNewer, version, formatVersion)
	case version < formatVersion:
		return Manifest{}, fmt.Errorf("%w: there is no version %d", ErrForeign, version)
	}
	length := binary.LittleEndian.Uint32(encoded[12:])
	if length > maxManifestSize {
		return Manifest{}, fmt.Errorf("%w: manifest of %d bytes", ErrCorrupt, length)
	}
	rest, err := io.ReadAll(io.LimitReader(r, int64(length)+4))
	if err != nil {
		return Manifest{}, err
	}
	if len(rest) != int(length)+4 {
		return Manifest{}, cutShort(io.ErrUnexpectedEOF)
	}
	encoded = append(encoded, rest...)
	sum := binary.LittleEndian.Uint32(rest[length:])
	if crc32.Checksum(encoded[:len(encoded)-4], castagnoli) != sum {
		return Manifest{}, fmt.Errorf("%w: manifest checksum", ErrCorrupt)
	}
	return decodeFiles(rest[:length])
}

func decodeFiles(src []byte) (Manifest, error) {
	var m Manifest
	bad := fmt.Errorf("%w: manifest", ErrCorrupt)
	for len(src) > 0 {
		length, n := binary.Uvarint(src)
		if n <= 0 || length > uint64(len(src)-n) {
			return Manifest{}, bad
		}
		name := string(src[n : n+int(length)])
		src = src[n+int(length):]
		size, n := binary.Uvarint(src)
		if n <= 0 || size > math.MaxInt64 || len(src)-n < 4 {
			return Manifest{}, bad
		}
		// A name must not lead out of the directory, nor be the manifest's own, nor come twice.
		if !validName(name) || (len(m.Files) > 0 && m.Files[len(m.Files)-1].Name >= name) {
			return Manifest{}, fmt.Errorf("%w: file name %q", ErrCorrupt, name)
		}
		m.Files = append(m.Files, File{Name: name, Size: int64(size), Sum: binary.LittleEndian.Uint32(src[n:])})
		src = src[n+4:]
	}
	return m, m.check()
}

func validName(name string) bool {
	return name != "" && name != "." && name != ".." && name != manifestName && !strings.ContainsAny(name, "/\\\x00")
}

// cutShort makes an early end a corruption, and leaves other errors alone.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: ends early: %w", ErrCorrupt, io.ErrUnexpectedEOF)
	}
	return err
}

// listFiles returns the names in dir, sorted, without the manifest.
func listFiles(fs env.FS, dir string) ([]string, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == manifestName })
	slices.Sort(names)
	return names, nil
}

// loadManifest reads the manifest file of dir.
func loadManifest(fs env.FS, dir string) (m Manifest, err error) {
	file, err := fs.Open(fs.PathJoin(dir, manifestName))
	if err != nil {
		return Manifest{}, fmt.Errorf("snapshot: %s is not a snapshot: %w", dir, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return readManifest(file)
}

// writeFile writes a small file and syncs it, but not its name.
func writeFile(fs env.FS, path string, content []byte) error {
	file, err := fs.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
