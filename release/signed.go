package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aead.dev/minisign"
)

// mostSums bounds sums and signatures.
const mostSums = 1 << 20

// signatures prints the lines of signatures. With a key there must be one of the sums, whether it was given or not: whoever may
// change files may take a signature away. A file that is given alone must be in the sums beside it.
func (v *verification) signatures(at string, dir bool, paths []string) {
	at = filepath.Clean(at)
	sums := filepath.Join(at, sumsName)
	if !dir {
		sums = filepath.Join(filepath.Dir(at), sumsName)
	}
	signature := sums + ".minisig"
	for _, path := range paths {
		if path = filepath.Clean(path); strings.HasSuffix(path, ".minisig") && path != signature {
			v.judgeOther(path)
		}
	}
	if v.public == "" {
		if at == signature || slices.Contains(paths, signature) {
			v.cannot(filepath.Base(signature), "--pub names no key")
		}
		return
	}
	if strings.HasSuffix(at, ".minisig") && at != signature && !dir {
		return
	}
	for _, path := range []string{sums, signature} {
		stat, err := os.Lstat(path)
		if err != nil || !stat.Mode().IsRegular() || stat.Size() > mostSums {
			v.cannot(filepath.Base(path), "is absent, or no file of sums or a signature: without it the key of --pub says "+
				"nothing of %s",
				filepath.Base(at))
			return
		}
	}
	content, err := os.ReadFile(sums)
	if err != nil {
		v.cannot(sumsName, "%v", err)
		return
	}
	key, signed := v.judgeSignature(signature, bytes.NewReader(content))
	if signed && !dir && at != sums && at != signature {
		v.judgeLine(at, string(content), key)
	}
}

// judgeOther prints the line of a signature of another file than the sums.
func (v *verification) judgeOther(path string) {
	file, err := os.Open(strings.TrimSuffix(path, ".minisig"))
	if err != nil {
		v.cannot(filepath.Base(path), "%v", err)
		return
	}
	defer func() { _ = file.Close() }()
	v.judgeSignature(path, file)
}

// judgeSignature prints the line of the signature of a content, and tells whether the key of --pub made it.
func (v *verification) judgeSignature(path string, content io.Reader) (key minisign.PublicKey, signed bool) {
	name := filepath.Base(path)
	if v.public == "" {
		v.cannot(name, "--pub names no key")
		return key, false
	}
	key, err := publicKey(v.public)
	if err != nil {
		v.cannot(name, "--pub %s: %v", v.public, err)
		return key, false
	}
	switch signed, err = signedBy(key, content, path); {
	case err != nil:
		v.cannot(name, "%v", err)
	case !signed:
		v.differs(name, "the key %X has not signed it", key.ID())
	default:
		v.say("signed", name, "by the key %X", key.ID())
	}
	return key, signed && err == nil
}

// judgeLine prints what signed sums say of a file.
func (v *verification) judgeLine(path, sums string, key minisign.PublicKey) {
	name := filepath.Base(path)
	digest, err := sha256Of(path)
	if err != nil {
		v.cannot(name, "%v", err)
		return
	}
	for line := range strings.Lines(sums) {
		sum, of, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		switch {
		case of == name && sum == digest:
			v.say("signed", name, "by the key %X, in %s", key.ID(), sumsName)
			return
		case of == name:
			v.differs(name, "%s has another sum for it", sumsName)
			return
		}
	}
	v.cannot(name, "%s has no line for it: give the file the name that it was published under", sumsName)
}
