package config

import (
	"path/filepath"
	"strings"
)

// Encryption says with what the keys of an encrypted data directory are wrapped; none of it: the directory is not encrypted.
type Encryption struct {
	KeyFile    string // a file of keys
	KMS        string // unix:///PATH of a Kubernetes KMS v2 plug-in
	ScratchDir string // where backups are built, in the clear; empty: none are
}

// On reports whether the data directory is encrypted.
func (e *Encryption) On() bool { return e.KeyFile != "" || e.KMS != "" }

var encryptionSettings = []setting{
	{name: "encryption-key-file", arg: "FILE", filled: true,
		help: "Encrypt the data directory: this file, which its owner alone may read, has the key that wraps its keys: 32 " +
			"random bytes, or lines of 32 in base64, of which the first wraps (docs/encryption.md).",
		value: texts(func(c *Config) *string { return &c.Encryption.KeyFile })},
	{name: "encryption-kms", arg: "unix:///PATH", filled: true,
		help:  "Encrypt the data directory: a Kubernetes KMS v2 plug-in at this socket wraps its keys.",
		value: texts(func(c *Config) *string { return &c.Encryption.KMS })},
	{name: "encryption-scratch-dir", arg: "DIR",
		help: "Where a member with an encrypted data directory builds a backup, in the clear, before it sends it: a " +
			"directory of a memory file system. Without it such a member refuses backups.",
		value: texts(func(c *Config) *string { return &c.Encryption.ScratchDir })},
}

func (c *Config) encryptionFaults() (faults Faults) {
	e := &c.Encryption
	if path, ok := strings.CutPrefix(e.KMS, "unix://"); e.KMS != "" && (!ok || !filepath.IsAbs(path)) {
		faults = append(faults, "--encryption-kms must be unix:///PATH, the socket of a plug-in")
	}
	if e.ScratchDir != "" && !e.On() {
		faults = append(faults, "--encryption-scratch-dir needs --encryption-key-file or --encryption-kms: without them "+
			"backups are built in the data directory")
	}
	return faults
}
