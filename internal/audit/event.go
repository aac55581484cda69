package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"time"
	"unicode/utf8"
)

// Event is what is known of one call when it ends. It aliases what it was made of.
type Event struct {
	Time   time.Time
	Trace  string // id of the trace, if the call is recorded as one
	User   string // empty: none
	From   []byte // address of the client
	Method string // full name, as gRPC has it
	Op     Op
	Parts  []Part // keys that it names, at most MaxParts
	Left   int    // parts beyond these
	About  string // what else it names: a user, a role, a member, a job
	Lease  int64
	Size   int    // of the request, in bytes
	Code   string // of gRPC; empty: OK
	Denied bool   // the caller may not do that, or is not logged in
	// Revision is the store's after a write, or that of a read; zero: unknown.
	Revision int64
	// Changes says that the call changes what it is about; it counts for OpAudit.
	Changes bool
	// Login is the user that a call of OpLogin is about.
	Login string
	// Refused says that this member did not execute the call, though its caller may do that: a limit, or a required output
	// that takes no records, did not let it pass.
	Refused bool
	Write   Write
}

// Write names a write of a native client: all its records have the same one. The zero value is another call.
type Write struct {
	Client, Session, Sequence uint64
	Attempt                   string // AttemptWitness or AttemptRepeat; empty: the first, at a member that is to propose it
}

// Attempts of a native client's write.
const (
	AttemptWitness = "witness" // of the fast path: the member holds the write, and others propose it
	AttemptRepeat  = "repeat"  // the client says that it has sent the write before
)

// Part is one range of keys of a call.
type Part struct {
	What string // of a transaction: put, delete, range, or what is compared, as "compare mod ="; empty: the call itself
	Key  []byte
	End  []byte // as in etcd's requests; empty: the key alone
	// Size is that of the value, in bytes.
	Size  int
	Lease int64
}

const (
	// MaxParts bounds the parts of one record.
	MaxParts = 32
	// maxText bounds a text of a record, and maxKey a key. A longer one is cut, and its length told.
	maxText = 256
	maxKey  = 512
	// maxBody bounds a body. Each byte of a text takes six at most, in JSON.
	maxBody = 6 * (MaxParts*(2*maxKey+64) + 8*maxText)
)

// Body appends the record of a call, from its time on to the end of the line, without the beginning that a Chain gives it.
func (p *Policy) Body(dst []byte, e *Event, level Level, shape Shape) []byte {
	dst = append(dst, `"time":"`...)
	dst = appendTime(dst, e.Time)
	dst = append(dst, '"')
	dst = field(dst, "user", e.User)
	dst = field(dst, "from", e.From)
	dst = field(dst, "op", e.Op.String())
	dst = field(dst, "method", e.Method)
	dst = field(dst, "about", e.About)
	if len(e.Parts) == 1 && e.Parts[0].What == "" {
		dst = p.part(dst, &e.Parts[0], level, shape)
	} else if len(e.Parts) > 0 {
		dst = append(dst, `,"parts":[`...)
		for i := range e.Parts {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"what":`...)
			dst = quoted(dst, e.Parts[i].What)
			dst = append(p.part(dst, &e.Parts[i], level, shape), '}')
		}
		dst = append(dst, ']')
		dst = number(dst, "parts_left_out", int64(e.Left))
	}
	dst = lease(dst, "lease", e.Lease)
	dst = e.Write.append(dst)
	if level == Request {
		dst = number(dst, "request_bytes", int64(e.Size))
	}
	dst = field(dst, "decision", e.decision())
	dst = field(dst, "code", e.Code)
	dst = number(dst, "revision", e.Revision)
	dst = field(dst, "trace", e.Trace)
	return append(dst, "}\n"...)
}

// decision is what a record says of whether the call was let pass.
func (e *Event) decision() string {
	switch {
	case e.Denied:
		return "denied"
	case e.Refused:
		return "refused"
	}
	return "allowed"
}

// append appends the name of a native client's write.
func (w *Write) append(dst []byte) []byte {
	if w.Sequence == 0 {
		return dst
	}
	dst = strconv.AppendUint(append(dst, `,"write":"`...), w.Client, 16)
	dst = strconv.AppendUint(append(dst, '/'), w.Session, 16)
	dst = append(strconv.AppendUint(append(dst, '/'), w.Sequence, 10), '"')
	return field(dst, "attempt", w.Attempt)
}

func (p *Policy) part(dst []byte, part *Part, level Level, shape Shape) []byte {
	dst = p.key(dst, "key", part.Key, shape)
	switch {
	case len(part.End) == 0:
	case len(part.End) == 1 && part.End[0] == 0:
		dst = append(dst, `,"to":"the end"`...)
	default:
		dst = p.key(dst, "end", part.End, shape)
	}
	if level == Request {
		dst = number(dst, "value_bytes", int64(part.Size))
		dst = lease(dst, "key_lease", part.Lease)
	}
	return dst
}

// key appends a key: NAME if it is text, NAME_base64 if not, NAME_hash or NAME_prefix.
func (p *Policy) key(dst []byte, name string, key []byte, shape Shape) []byte {
	dst = append(append(dst, `,"`...), name...)
	switch shape {
	case Hashed:
		mac := hmac.New(sha256.New, p.salt)
		mac.Write(key)
		dst = append(dst, `_hash":"`...)
		return append(hex.AppendEncode(dst, mac.Sum(nil)[:16]), '"')
	case Prefix:
		key = key[:bytes.LastIndexByte(key, '/')+1]
		dst = append(dst, "_prefix"...)
	}
	whole := len(key)
	if whole > maxKey {
		key = key[:maxKey]
	}
	if utf8.Valid(key) {
		dst = quoted(append(dst, `":`...), key)
	} else {
		dst = append(base64.StdEncoding.AppendEncode(append(dst, `_base64":"`...), key), '"')
	}
	if whole > maxKey {
		dst = number(dst, name+"_bytes", int64(whole))
	}
	return dst
}

// field appends a field, unless it is empty. name is plain.
func field[T string | []byte](dst []byte, name string, value T) []byte {
	if len(value) == 0 {
		return dst
	}
	dst = append(append(dst, `,"`...), name...)
	if len(value) > maxText {
		value = value[:maxText]
	}
	return quoted(append(dst, `":`...), value)
}

func number(dst []byte, name string, value int64) []byte {
	if value == 0 {
		return dst
	}
	dst = append(append(dst, `,"`...), name...)
	return strconv.AppendInt(append(dst, `":`...), value, 10)
}

// lease appends the id of a lease in hexadecimal, as commands show it.
func lease(dst []byte, name string, id int64) []byte {
	if id == 0 {
		return dst
	}
	dst = append(append(dst, `,"`...), name...)
	return append(strconv.AppendUint(append(dst, `":"`...), uint64(id), 16), '"')
}

const hexDigits = "0123456789abcdef"

// quoted appends a text as a JSON string of printable ASCII where it is, so that a terminal shows nothing else.
func quoted[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, text[from:i]...)
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune([]byte(text[i:min(i+utf8.UTFMax, len(text))]))
		}
		dst = appendEscaped(dst, r)
		i += size
		from = i
	}
	return append(append(dst, text[from:]...), '"')
}

func appendEscaped(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r > 0xffff:
		r -= 0x10000
		return appendEscaped(appendEscaped(dst, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// appendTime appends a time in UTC, to the microsecond.
func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
}
