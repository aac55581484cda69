package apply

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/test/golden/frozen"
)

// Ensure that the rows of the tables that level 2 brought keep the rule for what their decoders do not know.
func TestLaw_rows(t *testing.T) {
	moment := kv.Moment{Time: 1764374400000, Member: 300, Seen: 70, Noted: 1000}
	key := momentRow(moment.Seen)[2:]
	head := kv.AuditHeadRow{Member: 2, Chain: 300, Sequence: 9, At: -5, Sum: make([]byte, kv.AuditSumBytes), File: []byte("f")}
	headKey := headRow(head.Member, 7)[2:]
	rule := kv.LimitRule{Name: "r", Prefixed: true, Prefix: []byte("p/"),
		Bounds: [kv.LimitKinds]kv.Bound{kv.LimitQuotaKeys: {Set: true, Most: 300}}}
	use := func(row string) []byte { return []byte(row) }
	decodeUse := func(src []byte) ([]byte, error) {
		u := &quotaUse{}
		if err := u.load([]byte("r"), src); err != nil {
			return nil, err
		}
		return u.encoded(), nil
	}
	for _, form := range []frozen.Form{
		{Name: "moment", Value: appendMoment(nil, &moment), Decode: func(src []byte) ([]byte, error) {
			m, err := decodeMoment(key, src)
			return appendMoment(nil, &m), err
		}},
		{Name: "policy", Value: appendPolicy(nil, 300, []byte("{}")), Decode: func(src []byte) ([]byte, error) {
			version, text, err := decodePolicy(src)
			return appendPolicy(nil, version, text), err
		}},
		{Name: "head", Value: appendHead(nil, &head), Decode: func(src []byte) ([]byte, error) {
			h, number, err := decodeHead(headKey, src)
			if err == nil && number != 7 {
				t.Errorf("head number %d", number)
			}
			return appendHead(nil, &h), err
		}},
		{Name: "rule", Value: appendRule(nil, &rule), Decode: func(src []byte) ([]byte, error) {
			r, err := decodeRule([]byte("r"), src)
			return appendRule(nil, &r), err
		}, Later: map[int]byte{4: 2}}, // the flags
		{Name: "use that is counted", Value: use("\x01\x01\x80\x02\x02\x00"), Decode: decodeUse, Later: map[int]byte{1: 2}},
		{Name: "use that is not", Value: use("\x01\x00\x02\x80\x02\x02p/"), Decode: decodeUse, Later: map[int]byte{1: 2}},
		{Name: "backup", Value: appendBackup(nil, &kv.BackupRow{Generation: 3, Turn: 2, Policy: kv.BackupPolicy{On: true, Place: "file:///b"},
			Known: []kv.BackupBase{{Index: 300, Hash: [32]byte{31: 9}}}}),
			Decode: func(src []byte) ([]byte, error) {
				row, err := decodeBackup(src)
				return appendBackup(nil, &row), err
			}},
	} {
		if form.Later == nil {
			form.Later = map[int]byte{}
		}
		form.Later[0] = 2
		form.Damage = ErrCorruptRow
		form.Obey(t)
	}
}

// Ensure that a row that is empty, or under a key that is not its own, is damage.
func TestLaw_rows_keys(t *testing.T) {
	head := kv.AuditHeadRow{Member: 2, Chain: 3, Sequence: 9, Sum: make([]byte, kv.AuditSumBytes)}
	rule := kv.LimitRule{Name: "r", User: "u", Bounds: [kv.LimitKinds]kv.Bound{kv.LimitWrites: {Set: true}}}
	moment := kv.Moment{Time: 1, Seen: 1, Noted: 1}
	for name, decode := range map[string]func() error{
		"an empty row": func() error { _, err := openRow("row", nil, nil, 1); return err },
		"a moment without a revision": func() error {
			_, err := decodeMoment([]byte("short"), appendMoment(nil, &moment))
			return err
		},
		"a head of another member": func() error {
			_, _, err := decodeHead(headRow(3, 1)[2:], appendHead(nil, &head))
			return err
		},
		"a head with a short key": func() error { _, _, err := decodeHead([]byte("short"), appendHead(nil, &head)); return err },
		"a rule of another name":  func() error { _, err := decodeRule([]byte("q"), appendRule(nil, &rule)); return err },
		"a policy without a version": func() error {
			_, _, err := decodePolicy(appendPolicy(nil, 0, nil))
			return err
		},
	} {
		if err := decode(); !errors.Is(err, ErrCorruptRow) || errors.Is(err, level.ErrLater) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
