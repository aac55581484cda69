package apply

import "testing"

// Ensure that no two tables of the state share the letter of their rows: each would read the other's as its own.
func TestRows_letters(t *testing.T) {
	letters := map[byte]string{}
	for name, letter := range map[string]byte{
		"tombstones": rowTombstone, "published": rowPublished, "alarms": rowAlarm, "open sessions": rowOpen,
		"highest sessions": rowHighest, "jobs": rowJob, "moments": rowMoment, "users": rowAuth, "limits": rowLimit,
		"uses of limits": rowLimitUse, "heads of the audit": rowHead, "identity": rowIdentity[1], "applied": rowApplied[1],
		"configuration": rowConfig[1], "chain": rowChain[1], "rise": rowRise[1], "policy of the audit": rowAudit[1],
		"next slot": rowNextSlot[1],
	} {
		if other, taken := letters[letter]; taken {
			t.Errorf("%q is the letter of %s and of %s", letter, name, other)
		}
		letters[letter] = name
	}
}
