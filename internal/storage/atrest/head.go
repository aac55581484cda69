package atrest

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
)

// headBytes is the length of the head of an encrypted file. Numbers are little-endian.
//
//	0             8         12     16          32          64
//	+-------------+---------+------+-----------+-----------+---------
//	| "QUORENC\n" | version | crc  | key id    | salt      | content
//	+-------------+---------+------+-----------+-----------+---------
//
// crc is the CRC32C of the head without these four bytes. The content is encrypted with AES-256 in counter mode, from zero on,
// under the key that HKDF-SHA256 makes of data key, salt and fileUse.
const (
	headBytes   = 64
	headVersion = 1
	fileUse     = "quorate file"
)

var headMagic = [8]byte{'Q', 'U', 'O', 'R', 'E', 'N', 'C', '\n'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Errors of files and logs.
var (
	// ErrPlain means that a file, or a log, is not encrypted, but the directory is.
	ErrPlain = errors.New("it is not encrypted, as all files of this data directory are: it was put there from elsewhere")
	// ErrEncrypted means that a log is encrypted, and there are no keys.
	ErrEncrypted = errors.New("it is encrypted, and the ring of its keys is not there")
	// ErrNoKey means that the ring of the directory lacks the key of a file.
	ErrNoKey = errors.New("the ring of keys of this data directory lacks the key of it: files of two directories were mixed, " +
		"or the ring was replaced by an older one")
	// ErrOtherKey means that a file of keys lacks the key that the ring was wrapped by, whose name follows.
	ErrOtherKey = errors.New("it was wrapped by key")
	// ErrDamagedRing means that the ring of keys cannot be read, by whatever key.
	ErrDamagedRing = errors.New("the ring of keys is damaged")
	// ErrDamagedHead means that a file is damaged where it names its key.
	ErrDamagedHead = errors.New("the head of the encrypted file is damaged")
)

type head struct {
	key  KeyID
	salt [SaltBytes]byte
}

func (h *head) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, headMagic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, headVersion)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(append(dst, h.key[:]...), h.salt[:]...)
	binary.LittleEndian.PutUint32(dst[start+12:], headSum(dst[start:]))
	return dst
}

func headSum(head []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:12], castagnoli), castagnoli, head[16:headBytes])
}

// parseHead checks the version before the checksum: a later one may have it elsewhere.
func parseHead(src []byte) (h head, err error) {
	if len(src) < headBytes || [8]byte(src) != headMagic {
		return h, ErrPlain
	}
	if version := binary.LittleEndian.Uint32(src[8:]); version > headVersion {
		return h, fmt.Errorf("an encrypted file of version %d, this build reads %d: %w", version, headVersion, level.ErrLater)
	} else if version < headVersion || headSum(src) != binary.LittleEndian.Uint32(src[12:]) {
		return h, ErrDamagedHead
	}
	copy(h.key[:], src[16:])
	copy(h.salt[:], src[32:])
	return h, nil
}

// streamAt returns the key stream of a file from a place on.
func streamAt(block cipher.Block, offset int64) cipher.Stream {
	const size = 16 // of a block of AES
	var counter [size]byte
	binary.BigEndian.PutUint64(counter[8:], uint64(offset/size))
	stream := cipher.NewCTR(block, counter[:])
	if within := offset % size; within > 0 {
		var skipped [size]byte
		stream.XORKeyStream(skipped[:within], skipped[:within])
	}
	return stream
}

// CheckPlain returns ErrEncrypted if a file begins as an encrypted one does. It ignores a file that it cannot read.
func CheckPlain(fs env.FS, path string) error {
	file, err := fs.Open(path)
	if err != nil {
		return nil
	}
	var begin [len(headMagic)]byte
	_, err = io.ReadFull(file, begin[:])
	if err := errors.Join(err, file.Close()); err == nil && begin == headMagic {
		return fmt.Errorf("%s: %w", path, ErrEncrypted)
	}
	return nil
}
