package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aead.dev/minisign"
)

// passwordVariable is the variable of the environment with the password of a key: a flag would be in the list of processes.
const passwordVariable = "RELEASE_KEY_PASSWORD"

// writeKey makes a key of minisign in a file, encrypted if there is a password, and its public half beside it.
func writeKey(path, password string) (public string, err error) {
	for _, taken := range []string{path, path + ".pub"} {
		if _, err := os.Lstat(taken); err == nil {
			return "", fmt.Errorf("%s exists: a key that signed a release must not be lost", taken)
		}
	}
	pub, key, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	text, err := key.MarshalText()
	if password != "" {
		text, err = minisign.EncryptKey(password, key)
	}
	if err != nil {
		return "", err
	}
	half, err := pub.MarshalText()
	if err != nil {
		return "", err
	}
	for _, file := range []struct {
		path string
		text []byte
		mode os.FileMode
	}{{path, text, 0o600}, {path + ".pub", half, 0o644}} {
		if err := os.WriteFile(file.path, append(bytes.TrimRight(file.text, "\n"), '\n'), file.mode); err != nil {
			return "", err
		}
	}
	return pub.String(), nil
}

// readKey reads a private key.
func readKey(path, password string) (key minisign.PrivateKey, err error) {
	text, err := os.ReadFile(path)
	switch {
	case err != nil:
	case !minisign.IsEncrypted(text):
		err = key.UnmarshalText(bytes.TrimSpace(text))
	case password == "":
		return key, fmt.Errorf("--key %s: is encrypted: set %s", path, passwordVariable)
	default:
		key, err = minisign.DecryptKey(password, text)
	}
	if err != nil {
		err = fmt.Errorf("--key %s: %w", path, err)
	}
	return key, err
}

// signSums signs the sums in a directory, and by them all files. The comment has no time: who signs twice signs the same.
func (r *Release) signSums(dir string, key minisign.PrivateKey) error {
	content, err := os.ReadFile(filepath.Join(dir, sumsName))
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("--key signs the sums, and --only leaves them out")
	}
	if err != nil {
		return err
	}
	in := minisign.NewReader(bytes.NewReader(content))
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	signature := in.SignWithComments(key, fmt.Sprintf("%s %s of commit %s", r.Product.Name, r.Version, r.Tree.Commit),
		"signature of "+sumsName)
	return os.WriteFile(filepath.Join(dir, sumsName+".minisig"), signature, 0o644)
}

// signedBy tells whether a key has made the signature of a content.
func signedBy(key minisign.PublicKey, content io.Reader, signature string) (bool, error) {
	file, err := os.Open(signature)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, mostSums))
	if err != nil {
		return false, err
	}
	in := minisign.NewReader(content)
	if _, err := io.Copy(io.Discard, in); err != nil {
		return false, err
	}
	return in.Verify(key, text), nil
}

// publicKey is that of a text, or of a file.
func publicKey(text string) (key minisign.PublicKey, err error) {
	if key.UnmarshalText([]byte(text)) == nil {
		return key, nil
	}
	return minisign.PublicKeyFromFile(text)
}
