package apply

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Tables of the engine that belong to this package, by their first byte:
//
//	's' 'i'                     -> format, cluster id                    identity; the format is the feature level
//	's' 'a'                     -> index, term                           last entry applied
//	's' 'x'                     -> since index, sum                      chain over the entries applied
//	's' 'c'                     -> snapshot metadata of the entry that brought the configuration
//	's' 't' member(8)           -> index of its removal                  tombstones
//	's' 'p' member(8)           -> publish command                       what members published
//	's' 'w' member(8) kind(1)   -> (empty)                               raised alarms
//	's' 'l'                     -> when the active level rises           (levels.go)
//	's' 'g'                     -> form, version, text               policy of the audit
//	's' 'd' member(8) number(8) -> form, head of its chain of records (audit.go)
//	's' 'b'                     -> form, kv.BackupRow               continuous backup
//	's' 'j' job(8)              -> version, body                     jobs
//	's' 'z' seen(8)             -> form, noted - seen, time, member  moments
//	's' 'u' ...                 -> users and roles (package auth)
//	's' 'm' name                -> rules that bound users and prefixes (limits.go)
//	's' 'y' name                -> what exists of the prefix of such a rule
//	's' 'n'                     -> the slot that the next session gets
//	's' 'o' member(8) number(8) -> slot                                  open sessions
//	's' 'h' member(8)           -> highest number of its sessions so far  of members that are not removed
//	'q' slot(4) sequence(8)     -> results (packs.go)                    outcomes of proposals
//	'l' ...                     -> leases (package lease)
//	'i' 'o'                     -> whose store it is                    owner: not replicated, differs between members
//
// A session's slot stands for its id in the table of results, which should be small.
const (
	tableState = 's'
	tablePack  = 'q'
	tableLease = 'l'
	tableLocal = engine.LocalTable

	rowTombstone = 't'
	rowPublished = 'p'
	rowAlarm     = 'w'
	rowOpen      = 'o'
	rowHighest   = 'h'
	rowJob       = 'j'
	rowMoment    = 'z'
	rowAuth      = 'u'
	rowLimit     = 'm'
	rowLimitUse  = 'y'
	rowHead      = 'd'
)

var (
	rowIdentity = []byte{tableState, 'i'}
	rowApplied  = []byte{tableState, 'a'}
	rowConfig   = []byte{tableState, 'c'}
	rowChain    = []byte{tableState, 'x'}
	rowRise     = []byte{tableState, 'l'}
	rowAudit    = []byte{tableState, 'g'}
	rowBackup   = []byte{tableState, 'b'}
	rowNextSlot = []byte{tableState, 'n'}
	rowOwner    = []byte{tableLocal, 'o'}
)

func memberRow(kind byte, id consensus.MemberID) []byte {
	return binary.BigEndian.AppendUint64([]byte{tableState, kind}, uint64(id))
}

func sessionRow(kind byte, id consensus.SessionID) []byte {
	return binary.BigEndian.AppendUint64(memberRow(kind, id.Member), id.Number)
}

func alarmRow(alarm kv.Alarm) []byte {
	return append(memberRow(rowAlarm, consensus.MemberID(alarm.Member)), byte(alarm.Kind))
}

// rowWriter takes changes of these tables into the engine batch under way. mvcc.Writer is one.
type rowWriter interface {
	Set(key, value []byte)
	DeleteRaw(key []byte)
	DeleteRawRange(lower, upper []byte)
}

func appendPosition(dst []byte, position consensus.Position) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(position.Index)), uint64(position.Term))
}

func decodePosition(row []byte) (consensus.Position, error) {
	index, n := binary.Uvarint(row)
	if n > 0 {
		if term, m := binary.Uvarint(row[n:]); m > 0 && n+m == len(row) {
			return consensus.Position{Index: consensus.Index(index), Term: consensus.Term(term)}, nil
		}
	}
	return consensus.Position{}, fmt.Errorf("%w: applied mark %x", ErrCorruptRow, row)
}

func decodeNumber(what string, row []byte) (uint64, error) {
	number, n := binary.Uvarint(row)
	if n <= 0 || n != len(row) {
		return 0, fmt.Errorf("%w: %s %x", ErrCorruptRow, what, row)
	}
	return number, nil
}

// openRow takes the number of its form off a row of a table that came with level 2. The error is level.ErrLater if a later
// build wrote it, and ErrCorruptRow if no build did.
func openRow(what string, key, row []byte, form byte) (rest []byte, err error) {
	switch {
	case len(row) == 0 || row[0] == 0:
		return nil, fmt.Errorf("%w: %s %q: %x", ErrCorruptRow, what, key, row)
	case row[0] > form:
		return nil, fmt.Errorf("%w: %s %q", level.ErrLater, what, key)
	}
	return row[1:], nil
}

// appendBytes appends bytes behind their length.
func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// onlyBytes returns the bytes that appendBytes appended, if nothing follows them.
func onlyBytes(src []byte) (b []byte, ok bool) {
	size, n := binary.Uvarint(src)
	if n <= 0 || size != uint64(len(src)-n) {
		return nil, false
	}
	return src[n:], true
}

// rowSum is a hash of a row. The exclusive or of those of all rows is a hash of a table, and a change of one row brings it up
// to date.
func rowSum(key, value []byte) uint64 {
	var sums [16]byte
	binary.LittleEndian.PutUint64(sums[:8], xxhash.Sum64(key))
	binary.LittleEndian.PutUint64(sums[8:], xxhash.Sum64(value))
	return xxhash.Sum64(sums[:])
}

// scan calls visit for every row that begins with prefix, with the rest of its key. The slices are valid during the
// call.
func scan(eng engine.Engine, prefix []byte, visit func(rest, value []byte) error) (err error) {
	upper := append([]byte(nil), prefix...)
	upper[len(upper)-1]++
	return scanRange(eng, prefix, upper, func(key, value []byte) (more bool, err error) {
		err = visit(key[len(prefix):], value)
		return err == nil, err
	})
}

// scanRange calls visit for every row in [lower, upper), until it returns false. The slices are valid during the call.
func scanRange(eng engine.Engine, lower, upper []byte, visit func(key, value []byte) (more bool, err error)) (err error) {
	it, err := eng.NewIter(lower, upper)
	if err != nil {
		return fmt.Errorf("apply: read table %q: %w", lower, err)
	}
	for valid := it.First(); valid; valid = it.Next() {
		var more bool
		if more, err = visit(it.Key(), it.Value()); !more || err != nil {
			break
		}
	}
	if err == nil {
		err = it.Error()
	}
	if closeErr := it.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("apply: read table %q: %w", lower, err)
	}
	return nil
}

func appendIndex(index consensus.Index) []byte { return binary.AppendUvarint(nil, uint64(index)) }
