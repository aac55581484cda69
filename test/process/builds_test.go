package process_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
)

// The feature levels of the build that ships, and of the later one of nextLevel.
const (
	ownLevel   = uint32(level.Own)
	laterLevel = ownLevel + 1
)

// edit replaces a text of a source file, which it contains once.
type edit struct{ file, from, to string }

// nextLevel makes of the build that ships a later one, which knows a feature level more. A cluster of both has what an upgrade
// has: members that publish two levels, directories of two formats, and a level that rises. And the later build grants a lease of
// otherTTL otherwise, and has no level for that: a fault that one test looks for and the others do not meet. A build of its own for
// the fault would cost CI a minute.
var nextLevel = []edit{
	{"internal/base/level/level.go", "	Own = ", "	Own = 1 + "},
	{"internal/base/level/level.go", "}\n\n// Enables describes",
		fmt.Sprintf("	{%d, %q, %q},\n}\n\n// Enables describes", laterLevel, "9.9.0", "nothing: it is made up")},
	{"internal/kv/apply/execute.go", "	case x.leases.Exists(op.ID):\n",
		fmt.Sprintf("	case x.leases.Exists(op.ID), op.TTLSeconds == %d:\n", otherTTL)},
}

// otherTTL is the time to live of leases, in seconds, that the later build of nextLevel does not grant as it should.
const otherTTL = 4242

// buildOf builds the product from sources that are changed, without changing them.
func buildOf(version string, edits []edit) (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	dir, changed := filepath.Join(binaryDir, version), map[string]string{}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for i, e := range edits {
		path := filepath.Join(root, e.file)
		from := path
		if earlier, again := changed[path]; again {
			from = earlier
		}
		source, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if strings.Count(string(source), e.from) != 1 {
			return "", fmt.Errorf("%s does not have once: %s", e.file, e.from)
		}
		changed[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(changed[path], []byte(strings.Replace(string(source), e.from, e.to, 1)), 0o644); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": changed})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "quorate")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary,
		"-ldflags", "-X github.com/quorate/quorate/internal/config.Version="+version, "github.com/quorate/quorate/cmd/quorate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return binary, nil
}

var (
	nextBuild    = sync.OnceValues(func() (string, error) { return buildOf("9.9.0", nextLevel) })
	otherVersion = sync.OnceValues(func() (string, error) { return buildOf("9.9.9", nil) })
)

func anotherBinary(t *testing.T, build func() (string, error)) string {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
