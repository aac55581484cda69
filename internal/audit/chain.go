package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"
)

// SumBytes is the length of a sum: the first bytes of the SHA-256 of a line without its end. 192 bits leave no hope of two
// lines with one sum.
const SumBytes = 24

// Sum is the sum of a line.
type Sum [SumBytes]byte

// String is the form in a record.
func (s Sum) String() string { return base64.RawURLEncoding.EncodeToString(s[:]) }

// ParseSum reads String's form.
func ParseSum(text string) (s Sum, ok bool) {
	read, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(read) != SumBytes {
		return Sum{}, false
	}
	return Sum(read), true
}

func sumOf(line []byte) (s Sum) {
	full := sha256.Sum256(line)
	copy(s[:], full[:])
	return s
}

// Chain numbers records, and binds each to the one before it.
type Chain struct {
	Member   uint64
	ID       uint64 // drawn when a chain begins
	Sequence uint64 // of the last record; zero: there is none
	Sum      Sum    // of the last record
}

// Append appends the line of a body to dst.
func (c *Chain) Append(dst, body []byte) []byte {
	begin := len(dst)
	c.Sequence++
	dst = strconv.AppendUint(append(dst, `{"seq":`...), c.Sequence, 10)
	dst = strconv.AppendUint(append(dst, `,"member":"`...), c.Member, 16)
	dst = append(dst, `","prev":"`...)
	dst = append(base64.RawURLEncoding.AppendEncode(dst, c.Sum[:]), `",`...)
	dst = append(dst, body...)
	c.Sum = sumOf(dst[begin : len(dst)-1])
	return dst
}

// Reasons of a file's first record.
const (
	Begins   = "begins"   // there was no file
	Resumes  = "resumes"  // the process starts, and goes on in the file
	Rotated  = "rotated"  // the file before it was full
	Deleted  = "deleted"  // the file was not there any more
	Replaced = "replaced" // there was another file in its place
	Cut      = "cut"      // the file was shorter than what was written to it
)

// The kinds of records that are not of calls.
const (
	EventFile = "file" // a file begins, or a process goes on in it
	EventLost = "lost" // records are missing, since an output did not take them in time
	EventEnds = "ends" // the process ends in good order
)

// FileBody is the body of the record with which a file begins. torn are the bytes of an unfinished line before it.
func (c *Chain) FileBody(dst []byte, at time.Time, why string, torn int) []byte {
	dst = event(dst, at, EventFile)
	dst = field(dst, "chain", strconv.FormatUint(c.ID, 16))
	dst = field(dst, "why", why)
	return append(number(dst, "torn_bytes", int64(torn)), "}\n"...)
}

// EventBody is the body of another record: with how many records are missing, and why.
func EventBody(dst []byte, at time.Time, kind string, records uint64, why string) []byte {
	dst = number(event(dst, at, kind), "records", int64(min(records, 1<<62)))
	return append(field(dst, "why", why), "}\n"...)
}

func event(dst []byte, at time.Time, kind string) []byte {
	dst = appendTime(append(dst, `"time":"`...), at)
	return field(append(dst, '"'), "event", kind)
}
