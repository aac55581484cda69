package atrest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/atrest/atresttest"
	"github.com/quorate/quorate/internal/storage/durable"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/keysource"
)

var now = time.Unix(1796000000, 0).UTC()

// keyFile writes a file of keys, each of one letter's bytes and a number, and reads it.
func keyFile(t *testing.T, letters string) *atrest.KeyFile {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	var text strings.Builder
	for _, letter := range letters {
		fmt.Fprintln(&text, base64.StdEncoding.EncodeToString(oneKey(byte(letter))))
	}
	if err := os.WriteFile(name, []byte(text.String()), 0o400); err != nil {
		t.Fatal(err)
	}
	return must(keysource.ReadKeyFile(name))
}

func oneKey(letter byte) []byte {
	key := bytes.Repeat([]byte{letter}, atrest.KeyBytes)
	key[0] = 0x80
	return key
}

func dataDir(t *testing.T) *filestest.MemFS {
	t.Helper()
	fs := filestest.NewCrashableMem()
	if err := durable.MakeDir(fs, "/data"); err != nil {
		t.Fatal(err)
	}
	return fs
}

// Ensure that a ring opens with the keys that it was given, whichever of a file's keys wrapped it, and that rotation wraps it
// with the first one.
func TestRing_keyFile(t *testing.T) {
	ctx, fs := context.Background(), dataDir(t)
	ring := must(atrest.CreateRing(ctx, fs, "/data", atrest.Providers{keyFile(t, "a")}, now))
	first := ring.Active().ID
	if has := must(atrest.HasRing(fs, "/data")); !has {
		t.Error("there is no ring")
	}
	ring = must(atrest.OpenRing(ctx, fs, "/data", atrest.Providers{keyFile(t, "ba")}))
	if ring.Active().ID != first {
		t.Error("another key is active")
	}
	second := must(ring.Rotate(ctx, nil, now.Add(time.Hour))).ID
	if _, err := atrest.OpenRing(ctx, fs, "/data", atrest.Providers{keyFile(t, "a")}); err == nil ||
		!strings.Contains(err.Error(), "add that key to this one") {
		t.Errorf("the former key opens it, or it is not said what to do: %v", err)
	}
	ring = must(atrest.OpenRing(ctx, fs, "/data", atrest.Providers{keyFile(t, "b")}))
	if keys, active, wrapped := ring.Keys(); len(keys) != 2 || keys[0].ID != first || active.ID != second ||
		!active.Created.Equal(now.Add(time.Hour)) || wrapped.Provider != atrest.FileProvider {
		t.Errorf("%d keys, active %v", len(keys), active)
	}
	for _, id := range []atrest.KeyID{first, second} {
		must(ring.Find(id))
	}
	if _, err := ring.Find(atrest.KeyID{1}); !errors.Is(err, atrest.ErrNoKey) {
		t.Error(err)
	}
	if _, err := atrest.OpenRing(ctx, fs, "/data", atrest.Providers{atresttest.Open{}}); !errors.Is(err, atrest.ErrOtherProvider) {
		t.Errorf("another provider: %v", err)
	}
}

// Ensure that a flip of any byte of the ring is refused.
func TestOpenRing_flipOfEveryByte(t *testing.T) {
	ctx, fs, keys := context.Background(), dataDir(t), atrest.Providers{keyFile(t, "a")}
	must(atrest.CreateRing(ctx, fs, "/data", keys, now))
	raw := content(fs, "/data/keyring")
	if bytes.Contains(raw, []byte(base64.StdEncoding.EncodeToString(oneKey('a')))) {
		t.Error("the ring holds the key that wraps it")
	}
	for at := range raw {
		damaged := bytes.Clone(raw)
		damaged[at] ^= 4
		write(t, fs, "/data/keyring", damaged)
		if _, err := atrest.OpenRing(ctx, fs, "/data", keys); err == nil {
			t.Fatalf("a flip of byte %d is not noticed", at)
		}
	}
}

// Ensure that a power loss or an error at any operation of a rotation leaves a ring with all keys that a file may have, and
// that a rotation which failed changes nothing in memory.
func TestRing_Rotate_atEveryOperation(t *testing.T) {
	ctx, keys := context.Background(), atrest.Providers{atresttest.Open{}}
	for n := 0; ; n++ {
		fs := dataDir(t)
		first := must(atrest.CreateRing(ctx, fs, "/data", keys, now)).Active().ID
		left, cause := -1, errors.New("no")
		var crashed *filestest.MemFS
		wrapped := filestest.Wrap(fs, filestest.InjectorFunc(func(op filestest.Op) error {
			if left--; left == 0 {
				crashed = fs.CrashClone(filestest.CrashCloneCfg{})
				return cause
			}
			return nil
		}))
		ring := must(atrest.OpenRing(ctx, wrapped, "/data", keys))
		left = n + 1
		key, err := ring.Rotate(ctx, nil, now)
		if left > 0 {
			if n < 6 {
				t.Errorf("only %d operations were tried", n)
			}
			return
		}
		if err == nil || key != nil || ring.Active().ID != first {
			t.Errorf("operation %d failed, and the rotation did not: %v", n, err)
		}
		for _, disk := range []*filestest.MemFS{crashed, fs} {
			again := must(atrest.OpenRing(ctx, disk, "/data", keys))
			must(again.Find(first))
		}
		left = -1
		key = must(ring.Rotate(ctx, nil, now))
		again := must(atrest.OpenRing(ctx, fs.CrashClone(filestest.CrashCloneCfg{}), "/data", keys))
		if must(again.Find(key.ID)); again.Active().ID != key.ID {
			t.Errorf("operation %d: the key is active before it is durable", n)
		}
	}
}

// Ensure that a provider which fails changes nothing, and is heard.
func TestRing_Rotate_providerFails(t *testing.T) {
	ctx, fs := context.Background(), dataDir(t)
	ring := must(atrest.CreateRing(ctx, fs, "/data", atrest.Providers{atresttest.Open{}}, now))
	before, cause := content(fs, "/data/keyring"), errors.New("away")
	if _, err := ring.Rotate(ctx, atrest.Providers{atresttest.Open{Failure: cause}}, now); !errors.Is(err, cause) {
		t.Error(err)
	}
	if !bytes.Equal(content(fs, "/data/keyring"), before) {
		t.Error("the ring was changed")
	}
	must(ring.Rotate(ctx, nil, now)) // the former provider is still there
	if _, err := atrest.OpenRing(ctx, fs, "/data", atrest.Providers{atresttest.Open{Failure: cause}}); !errors.Is(err, cause) {
		t.Error(err)
	}
}

// Ensure that a file of keys is refused where it is none, with a reason, and that no reason shows a key.
func TestReadKeyFile(t *testing.T) {
	good, dir := base64.StdEncoding.EncodeToString(oneKey('a')), t.TempDir()
	for i, row := range []struct {
		name, content string
		mode          os.FileMode
		want          string
	}{
		{"raw", string(oneKey('a')), 0o400, ""},
		{"base64", good + "\n", 0o600, ""},
		{"two", good + "\r\n" + base64.StdEncoding.EncodeToString(oneKey('b')), 0o400, ""},
		{"readable by a group", good, 0o440, "others than its owner"},
		{"readable by all", good, 0o404, "others than its owner"},
		{"empty", "", 0o400, "0 lines"},
		{"too short", good[:40], 0o400, "line 1 is not one"},
		{"hexadecimal", strings.Repeat("ab", 32), 0o400, "line 1 is not one"},
		{"text of 32 letters", strings.Repeat("password", 4), 0o400, "line 1 is not one"},
		{"31 bytes", string(oneKey('a')[:31]), 0o400, "is not one"},
		{"zeros", string(make([]byte, 32)), 0o400, "one byte 32 times"},
		{"many", strings.Repeat(good+"\n", 17), 0o400, "17 lines"},
		{"large", strings.Repeat(" ", 5<<10), 0o400, "more than 4096"},
	} {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, []byte(row.content), row.mode); err != nil {
			t.Fatal(err)
		}
		_, err := keysource.ReadKeyFile(name)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.name, err)
		}
		if err != nil && len(row.content) > 8 && strings.Contains(err.Error(), row.content[:8]) && row.name != "large" {
			t.Errorf("%s: the error shows the key: %v", row.name, err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join("..", filepath.Base(dir), "0"), link); err != nil {
		t.Fatal(err)
	}
	if _, err := keysource.ReadKeyFile(link); err == nil || !strings.Contains(err.Error(), "name the file itself") {
		t.Errorf("a link that leads out of its directory: %v", err)
	}
	if _, err := keysource.ReadKeyFile(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// Ensure that a ring with as many keys as it may have can be opened, and that a further one is refused and changes nothing.
func TestRing_Rotate_most(t *testing.T) {
	ctx, fs, keys := context.Background(), filestest.NewMem(), atrest.Providers{atresttest.Open{}}
	if err := fs.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	ring := must(atrest.CreateRing(ctx, fs, "/data", keys, now))
	var err error
	for err == nil {
		_, err = ring.Rotate(ctx, nil, now)
	}
	all, active, _ := ring.Keys()
	if len(all) != 1000 || !strings.Contains(err.Error(), "reset this member") {
		t.Errorf("%d keys, %v", len(all), err)
	}
	if again := must(atrest.OpenRing(ctx, fs, "/data", keys)); again.Active().ID != active.ID {
		t.Error("another key is active")
	}
}
