package seal_test

import (
	"crypto/fips140"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup/seal"
)

// Ensure that a process that may use no cryptography but that of FIPS 140-3 says so, before anything is encrypted, and does not
// fail in the library.
func TestFIPS(t *testing.T) {
	if !fips140.Enforced() {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFIPS$", "-test.v")
		again.Env = append(os.Environ(), "GODEBUG=fips140=only")
		out, err := again.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "it is enforced") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	t.Log("it is enforced")
	const recipient = "age1k0xkuylettylk8x7lg4hy39a34kfe88kx3wwdzw4f20ghhjkgu6snkpnlz"
	if _, err := seal.ParseRecipients([]string{recipient}); !errors.Is(err, seal.ErrFIPS) {
		t.Errorf("recipients: got %v", err)
	}
	content, err := os.ReadFile(filepath.Join(frozen, "identity"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(name, content, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.ReadIdentities([]string{name}); !errors.Is(err, seal.ErrFIPS) {
		t.Errorf("identities: got %v", err)
	}
}
