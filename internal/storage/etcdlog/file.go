package etcdlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/quorate/quorate/internal/storage/files"
)

// A file is frames: 8 bytes, little-endian, of which the lower 56 bits are the length of the record and, if the highest bit is
// set, the lower three of the highest byte the length of the padding behind it; then the record, a message: type=1, crc=2,
// data=3. A length of zero is where nothing was written yet.
const sectorBytes = 512

// maxRecordBytes bounds one record: etcd takes no larger request.
const maxRecordBytes = 512 << 20

// errEnd means that the rest of the file was never written.
var errEnd = errors.New("end of the log")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// file reads one file. Only the last one may end in the middle of a record.
func (r *reader) file(name string, last bool) error {
	f, err := files.Disk.OpenSequential(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	frames := frames{from: bufio.NewReaderSize(f, 1<<20), size: info.Size()}
	for {
		record, err := frames.next()
		switch {
		case errors.Is(err, errEnd), errors.Is(err, io.ErrUnexpectedEOF) && last:
			return nil
		case err != nil:
			return err
		}
		if err := r.check(record); err != nil {
			if last && frames.torn(record) {
				return nil
			}
			return err
		}
	}
}

// check continues the running CRC with a record, and takes it.
func (r *reader) check(record []byte) error {
	kind, crc, data := int64(number(record, 1)), uint32(number(record, 2)), bytesField(record, 3)
	if kind == kindCRC { // at the beginning of a file
		if r.begun && crc != r.crc {
			return fmt.Errorf("%w: the files do not follow each other", ErrDamaged)
		}
		r.crc, r.begun = crc, true
		return nil
	}
	sum := crc32.Update(r.crc, castagnoli, data)
	if !r.begun || sum != crc {
		return fmt.Errorf("%w: a record does not match its checksum", ErrDamaged)
	}
	r.crc = sum
	return r.record(kind, data)
}

type frames struct {
	from       io.Reader
	size       int64
	begin, end int64 // of the last record
}

// next returns the next record.
func (f *frames) next() ([]byte, error) {
	var header [8]byte
	switch _, err := io.ReadFull(f.from, header[:]); {
	case errors.Is(err, io.EOF):
		return nil, errEnd
	case err != nil:
		return nil, err
	}
	word := binary.LittleEndian.Uint64(header[:])
	if word == 0 {
		return nil, errEnd
	}
	length, padding := int64(word&(1<<56-1)), int64(0)
	if word>>63 == 1 {
		padding = int64(word >> 56 & 7)
	}
	f.begin = f.end + int64(len(header))
	if length > maxRecordBytes || length+padding > f.size-f.begin {
		return nil, io.ErrUnexpectedEOF
	}
	f.end = f.begin + length + padding
	record := make([]byte, length+padding)
	if _, err := io.ReadFull(f.from, record); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return record[:length], nil
}

// torn reports whether a sector of the last record is all zero: it was never written.
func (f *frames) torn(record []byte) bool {
	at := f.begin
	for len(record) > 0 {
		n := min(int(sectorBytes-at%sectorBytes), len(record))
		zero := true
		for _, b := range record[:n] {
			zero = zero && b == 0
		}
		if zero {
			return true
		}
		record, at = record[n:], at+int64(n)
	}
	return false
}
