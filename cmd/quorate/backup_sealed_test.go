package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/ctl/command"
)

// keygen returns a key pair: the recipient, and the file of the identity.
func keygen(t *testing.T) (recipient, file string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(file, []byte("# a comment\n"+id.String()+"\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	return id.Recipient().String(), file
}

// An encrypted backup is listed without an identity, and planned, proved and restored with that of any recipient; a wrong or lost
// one, or a file that others may read, is refused by a sentence that says what to do, and nothing is made.
func TestBackup_encrypted(t *testing.T) {
	first, ours := keygen(t)
	second, theirs := keygen(t)
	_, other := keygen(t)
	recipients, err := seal.ParseRecipients([]string{first, second})
	if err != nil {
		t.Fatal(err)
	}
	dir, heads := shippedTo(t, 12, seal.NewLock(seal.NewSecret(), recipients))
	from := "--from=file://" + dir
	data := filepath.Join(t.TempDir(), "m1")
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte("AGE-SECRET-KEY-1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args   []string
		status int
		say    string
	}{
		{[]string{"backup", "list", from}, command.StatusOK, "bases, from entry"},
		{[]string{"backup", "list", from, "--identity", ours}, command.StatusOK, "an identity that was given opens them"},
		{[]string{"backup", "list", from, "--identity", other}, command.StatusOK, "no identity that was given opens them"},
		{[]string{"backup", "list", from, "-o", "json", "--identity", other, "--identity", ours}, command.StatusOK, `"opens":true`},
		{[]string{"backup", "verify", from}, command.StatusRefused, "give the identity of one of its recipients: --identity FILE"},
		{[]string{"backup", "verify", from, "--identity", other}, command.StatusRefused, "encrypted to other recipients"},
		{[]string{"backup", "verify", from, "--identity", open}, command.StatusRefused, "others than its owner may read"},
		{[]string{"backup", "verify", from, "--identity", "/gone"}, command.StatusRefused, "/gone"},
		{[]string{"backup", "verify", from, "--identity", theirs}, command.StatusOK, fmt.Sprintf("%016x", heads[11].Sum)},
		{[]string{"snapshot", "diff", from, "--at=entry:3", "--at=entry:5", "--identity", ours}, command.StatusOK, "k4"},
		{[]string{"snapshot", "diff", from, "--at=entry:3", "--at=entry:5"}, command.StatusRefused, "--identity FILE"},
		{[]string{"restore", from, "--at=latest", "--plan"}, command.StatusOK, "files"},
		{[]string{"restore", from, "--at=latest", "--plan", "--identity", ours}, command.StatusOK, "at most 0 entries"},
		{[]string{"restore", from, "--at=entry:5", "--data-dir=" + data, "--identity", other}, command.StatusRefused, "object base/"},
		{[]string{"restore", from, "--at=entry:5", "--data-dir=" + data}, command.StatusRefused, "--identity FILE"},
		{[]string{"restore", from, "--at=entry:5", "--data-dir=" + data, "--identity", ours}, command.StatusOK, "5 keys"},
	} {
		status, out, errs := quorate(t, row.args...)
		if status != row.status || !strings.Contains(out+errs, row.say) || strings.Contains(out+errs, "SECRET-KEY-1") {
			t.Errorf("%v: %d\n%s%s", row.args, status, out, errs)
		}
	}
}
