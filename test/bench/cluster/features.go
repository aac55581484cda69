package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// feature is something that a server does beside answering calls, if it is asked for: NAME=PATH,audit=on.
type feature struct {
	// flags are more flags of a member.
	flags func(c *Cluster, m *Member) []string
	// begin is a command of the server's program that turns the feature on, with its input; nil: the flags do.
	begin func(c *Cluster) (words []string, input string)
	// make makes files before the first start; nil: there are none.
	make func(c *Cluster) error
}

// features are those of quorate, by their names.
var features = map[string]feature{
	// Each member records all calls in a file, at level metadata.
	"audit": {
		flags: func(c *Cluster, m *Member) []string {
			return []string{"--audit-log=" + filepath.Join(c.dir, m.Name+".audit")}
		},
		begin: func(*Cluster) ([]string, string) {
			return []string{"audit", "policy", "set", "-"}, `{"rules": [{"level": "metadata"}]}`
		},
	},
	// A continuous backup goes to a directory, and one base is made at its beginning.
	"backup": {
		flags: func(c *Cluster, _ *Member) []string { return []string{"--backup-places=file://" + c.backupDir()} },
		begin: func(c *Cluster) ([]string, string) { return []string{"backup", "start", "file://" + c.backupDir()}, "" },
		make:  func(c *Cluster) error { return os.MkdirAll(c.backupDir(), 0o700) },
	},
	// The data directories are encrypted with a key of a file.
	"encryption": {
		flags: func(c *Cluster, _ *Member) []string { return []string{"--encryption-key-file=" + c.keyFile()} },
		make: func(c *Cluster) error {
			const key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n" // of a measurement
			return os.WriteFile(c.keyFile(), []byte(key), 0o400)
		},
	},
	// All keys are in the prefix of a quota that nothing reaches.
	"limit": {
		begin: func(*Cluster) ([]string, string) {
			return strings.Fields("limit set all --prefix= --quota-keys=1000000000 --quota-bytes=1TiB"), ""
		},
	},
}

func (c *Cluster) backupDir() string { return filepath.Join(c.dir, "backup") }
func (c *Cluster) keyFile() string   { return filepath.Join(c.dir, "key") }

// featureFlags are the flags of the features that the server has.
func (c *Cluster) featureFlags(m *Member) (flags []string) {
	for _, name := range c.Server.Features {
		if f := features[name]; f.flags != nil {
			flags = append(flags, f.flags(c, m)...)
		}
	}
	if len(c.Server.Features) > 0 {
		flags = append(flags, "--level-policy=now")
	}
	return flags
}

// makeFiles makes the files that features need.
func (c *Cluster) makeFiles() (err error) {
	for _, name := range c.Server.Features {
		if f := features[name]; f.make != nil {
			err = errors.Join(err, f.make(c))
		}
	}
	return err
}

// beginFeatures turns on what the flags do not, once the members' feature level allows it.
func (c *Cluster) beginFeatures(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for _, name := range c.Server.Features {
		f := features[name]
		if f.begin == nil {
			continue
		}
		words, input := f.begin(c)
		words = append(words, "--endpoints="+c.Members[0].ClientAddr)
		if c.Server.Users {
			words = append(words, "--user="+rootUser+":"+password)
		}
		for {
			command := exec.CommandContext(ctx, c.Server.Path, words...)
			command.Stdin = strings.NewReader(input)
			said, err := command.CombinedOutput()
			if err == nil {
				break
			}
			if !strings.Contains(string(said), "feature level") {
				return fmt.Errorf("turn on %s: %w: %s", name, err, said)
			}
		}
	}
	return nil
}

// featureNames are the names of all features, for help texts.
func featureNames() []string { return slices.Sorted(maps.Keys(features)) }
