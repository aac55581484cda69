package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that --compare takes a log elsewhere, and refuses what may mean two things.
func TestParsePlace(t *testing.T) {
	dir := t.TempDir()
	for _, made := range []string{"a,b", "m2/member", "m3/member", "w2"} {
		if err := os.MkdirAll(filepath.Join(dir, made), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	in := func(text string) string { return strings.ReplaceAll(text, "D/", dir+"/") }
	for _, row := range []struct {
		text string
		want place
		says string // of the refusal
	}{
		{"D/m2", place{in("D/m2"), ""}, ""},
		{"D/m2,D/w2", place{in("D/m2"), in("D/w2")}, ""},
		{"", place{}, "write --compare DIR, or --compare DIR,WAL-DIR"},
		{",D/w2", place{}, "write --compare DIR, or --compare DIR,WAL-DIR"},
		{"D/m2,", place{}, "write --compare DIR, or --compare DIR,WAL-DIR"},
		{"D/m2,D/w2,D/m3", place{}, "one --compare for each survivor"},
		{"D/m2,D/m3", place{}, "D/m3 is a data directory, and no log: write --compare D/m2 --compare D/m3"},
		{"D/a,b", place{}, "a directory has this whole name"},
	} {
		got, err := parsePlace(in(row.text))
		switch {
		case row.says == "" && (err != nil || got != row.want || got.String() != in(row.text)):
			t.Errorf("%q: got %v, %v, want %v", row.text, got, err, row.want)
		case row.says != "" && (!errors.Is(err, errUsage) || !strings.Contains(err.Error(), in(row.says))):
			t.Errorf("%q: got %v, want to hear %q", row.text, err, row.says)
		}
	}
}

// Ensure that --log-ends-at takes a place of a log, and refuses all else.
func TestParseLogEnd(t *testing.T) {
	got, err := parseLogEnd("4:90")
	if err != nil || got.Term != 4 || got.Index != 90 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"4", ":90", "4:", "4:90:1", "-4:90", "4,90"} {
		if _, err := parseLogEnd(text); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), "write TERM:INDEX") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
