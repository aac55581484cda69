package atrest

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// FileProvider is the name of a KeyFile.
const FileProvider = "file"

const (
	// MaxKeyFile bounds a file of keys, in bytes.
	MaxKeyFile = 4 << 10
	maxFileKey = 16 // keys in a file
)

// KeyFile is a provider whose keys are in a file. The first one wraps; the others only unwrap what they have wrapped before.
type KeyFile struct {
	name string
	keys [][]byte
}

// NewKeyFile reads the content of a file of a single key of 32 bytes, or of lines with one in base64 each. name is for errors.
func NewKeyFile(name string, content []byte) (*KeyFile, error) {
	if len(content) > MaxKeyFile {
		return nil, fmt.Errorf("%s: the file has more than %d bytes: it is no file of keys", name, MaxKeyFile)
	}
	keys, err := parseKeys(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: make one with `head -c 32 /dev/urandom | base64`", name, err)
	}
	return &KeyFile{name: name, keys: keys}, nil
}

var errKeyFile = errors.New("a file of keys holds 32 random bytes, or lines with 32 bytes in base64 each")

func parseKeys(content []byte) ([][]byte, error) {
	if len(content) == KeyBytes && !isText(content) {
		return check([][]byte{content})
	}
	lines := strings.Fields(string(content))
	if len(lines) == 0 || len(lines) > maxFileKey {
		return nil, fmt.Errorf("%w; this one has %d lines, and may have %d", errKeyFile, len(lines), maxFileKey)
	}
	var keys [][]byte
	for i, line := range lines {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != KeyBytes { // the error would show a part of the key
			return nil, fmt.Errorf("%w; line %d is not one", errKeyFile, i+1)
		}
		keys = append(keys, key)
	}
	return check(keys)
}

// isText tells letters and digits from a key: 32 random bytes are never all of them.
func isText(content []byte) bool {
	for _, b := range content {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' || b > '~' {
			return false
		}
	}
	return true
}

func check(keys [][]byte) ([][]byte, error) {
	for i, key := range keys {
		if bytes.Count(key, key[:1]) == len(key) {
			return nil, fmt.Errorf("%w; key %d has one byte %d times", errKeyFile, i+1, len(key))
		}
	}
	return keys, nil
}

// keyName is what a ring knows of the key that wrapped it: it tells one from another, and nothing of them.
func keyName(key []byte) string {
	name, err := hkdf.Key(sha256.New, key, nil, "quorate name of a key", 8)
	if err != nil {
		panic(err) // all lengths are constants
	}
	return hex.EncodeToString(name)
}

const wrapUse = "quorate keyring"

// Name implements Provider.
func (*KeyFile) Name() string { return FileProvider }

// Wrap implements Provider.
func (k *KeyFile) Wrap(_ context.Context, key []byte) (Wrapped, error) {
	block, err := aes.NewCipher(k.keys[0])
	if err != nil {
		return Wrapped{}, err
	}
	sealed := gcm(block).Seal(nil, nil, key, []byte(wrapUse))
	return Wrapped{KeyID: keyName(k.keys[0]), Ciphertext: sealed}, nil
}

// Current implements Provider.
func (k *KeyFile) Current(context.Context) (string, error) { return keyName(k.keys[0]), nil }

// Unwrap implements Provider.
func (k *KeyFile) Unwrap(_ context.Context, w *Wrapped) ([]byte, error) {
	for _, own := range k.keys {
		if keyName(own) != w.KeyID {
			continue
		}
		block, err := aes.NewCipher(own)
		if err != nil {
			return nil, err
		}
		key, err := gcm(block).Open(nil, nil, w.Ciphertext, []byte(wrapUse))
		if err != nil {
			return nil, fmt.Errorf("key %s of %s does not open it: the ring is damaged: %w", w.KeyID, k.name, err)
		}
		return key, nil
	}
	return nil, fmt.Errorf("%w %s, which %s lacks (its first key is %s): give the file that has it, or add that key to this "+
		"one, behind the one that shall wrap from now on", ErrOtherKey, w.KeyID, k.name, keyName(k.keys[0]))
}
