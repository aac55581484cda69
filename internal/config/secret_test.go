package config_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
)

// Ensure that no secret of a command line is shown, however it is given, and that all else is.
func TestBlankSecrets(t *testing.T) {
	args := []string{"--name", "m", "--join-token=12345678.s3cret", "-join-token", "12345678.s3cret", "--discovery-password=s3cret",
		"--discovery-user", "root:s3cret", "--user=root:s3cret", "--password", "s3cret", "--join=http://h:2380", "--join-token"}
	given := slices.Clone(args)
	got := config.BlankSecrets(args)
	if text := strings.Join(got, " "); strings.Contains(text, "s3cret") || !strings.Contains(text, "--join-token=***") ||
		got[1] != "m" || got[11] != "--join=http://h:2380" || len(got) != len(args) {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(args, given) {
		t.Errorf("the arguments themselves became %q", args)
	}
}

// Ensure that config print shows no secret, and says that there is one; what it prints can be read back.
func TestConfig_WriteYAML_secrets(t *testing.T) {
	c, err := config.Load([]string{"--name=m", "--join=http://h:2380", "--join-token=12345678.s3cret"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := c.WriteYAML(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "s3cret") || !strings.Contains(text, "# join-token: ***") {
		t.Errorf("got %s", text)
	}
}
