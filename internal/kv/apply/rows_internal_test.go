package apply

import (
	"bytes"
	"testing"
)

// letters are those of all tables of the state.
var letters = map[string]byte{
	"tombstones": rowTombstone, "published": rowPublished, "alarms": rowAlarm, "open sessions": rowOpen,
	"highest sessions": rowHighest, "jobs": rowJob, "moments": rowMoment, "users": rowAuth, "limits": rowLimit,
	"uses of limits": rowLimitUse, "heads of the audit": rowHead, "identity": rowIdentity[1], "applied": rowApplied[1],
	"configuration": rowConfig[1], "chain": rowChain[1], "rise": rowRise[1], "policy of the audit": rowAudit[1],
	"next slot": rowNextSlot[1], "row of the backup": rowBackup[1],
}

// Ensure that no two tables of the state share the letter of their rows: each would read the other's as its own.
func TestRows_letters(t *testing.T) {
	names := map[byte]string{}
	for name, letter := range letters {
		if other, taken := names[letter]; taken {
			t.Errorf("%q is the letter of %s and of %s", letter, name, other)
		}
		names[letter] = name
	}
}

// Ensure that each table of the state either stays in a store that is refounded, or is deleted.
func TestRefound_tables(t *testing.T) {
	for name, letter := range letters {
		if stays, goes := bytes.IndexByte(ofContents, letter) >= 0, bytes.IndexByte(ofCluster, letter) >= 0; stays == goes {
			t.Errorf("the table of %s stays: %t, and is deleted: %t", name, stays, goes)
		}
	}
	if len(ofContents)+len(ofCluster) != len(letters) {
		t.Errorf("%d tables stay and %d are deleted, of %d", len(ofContents), len(ofCluster), len(letters))
	}
}
