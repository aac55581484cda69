package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/base/keyrange"
)

// Entry is a record as it is read again: that of a call, or of an event. It has what Body and the Chain write; a field that the
// record lacks is zero.
type Entry struct {
	Seq      uint64    `json:"seq"`
	Member   string    `json:"member"`
	Time     time.Time `json:"time"`
	User     string    `json:"user"`
	From     string    `json:"from"`
	Op       string    `json:"op"`
	Method   string    `json:"method"`
	About    string    `json:"about"`
	Decision string    `json:"decision"`
	Code     string    `json:"code"`
	Revision int64     `json:"revision"`
	Write    string    `json:"write"`   // of a native client: client, session and number; all its records have the same
	Attempt  string    `json:"attempt"` // of Write: AttemptWitness, AttemptRepeat, or empty
	EntryKeys
	Parts []EntryPart `json:"parts"`
	Left  int         `json:"parts_left_out"`
	Event string      `json:"event"` // of a record that is of no call
	Why   string      `json:"why"`
	Count uint64      `json:"records"`
}

// EntryPart is a comparison or an operation of a transaction.
type EntryPart struct {
	What string `json:"what"`
	EntryKeys
}

// EntryKeys are the keys of an Entry, or of a part of it, in one of the shapes.
type EntryKeys struct {
	Key       string `json:"key"`
	KeyBase64 []byte `json:"key_base64"`
	KeyHash   string `json:"key_hash"`
	KeyPrefix string `json:"key_prefix"`
	End       string `json:"end"`
	EndBase64 []byte `json:"end_base64"`
	EndPrefix string `json:"end_prefix"`
	To        string `json:"to"` // "the end": all keys from Key on
}

// ParseEntry reads a line of a file of records, without its end; false: it is none.
func ParseEntry(line []byte) (e Entry, ok bool) {
	if len(line) > maxLine || json.Unmarshal(line, &e) != nil || e.Seq == 0 {
		return Entry{}, false
	}
	return e, true
}

// Below reports whether one of the keys of the record may lie below a prefix. Keys that are recorded as hashes may not be told
// from others: they do not.
func (e *Entry) Below(prefix []byte) bool {
	if e.EntryKeys.below(prefix) {
		return true
	}
	for i := range e.Parts {
		if e.Parts[i].EntryKeys.below(prefix) {
			return true
		}
	}
	return false
}

func (k *EntryKeys) below(prefix []byte) bool {
	key, end := []byte(k.Key), []byte(k.End)
	if len(k.KeyBase64) > 0 {
		key = k.KeyBase64
	}
	if len(k.EndBase64) > 0 {
		end = k.EndBase64
	}
	switch {
	case k.KeyPrefix != "": // all that is known is where the key begins
		return strings.HasPrefix(k.KeyPrefix, string(prefix)) || bytes.HasPrefix(prefix, []byte(k.KeyPrefix))
	case k.To != "":
		end = []byte{0}
	case len(key) == 0:
		return false
	}
	if len(end) == 0 {
		return bytes.HasPrefix(key, prefix)
	}
	wanted := below(prefix)
	return wanted.Overlaps(keyrange.From(key, end))
}
