package main

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/test/bench/goals"
)

// Every section of the table can be measured, and flags that say nothing sensible are refused.
func TestParseTable(t *testing.T) {
	given := []string{"--server", "etcd=/bin/etcd", "--server", "ours=/bin/ours", "--dir", "data"}
	p, err := parseTable(given)
	if err != nil {
		t.Fatal(err)
	}
	parts := p.parts()
	sections := goals.Sections(p.values)
	for _, section := range sections {
		if one := parts[section.Name]; one.run == nil || one.rounds < 1 || !strings.HasPrefix(one.command, "go run . ") {
			t.Errorf("section %s: got %+v", section.Name, one)
		}
	}
	if len(p.sections) != len(sections) || len(parts) != len(sections) {
		t.Errorf("%d sections by default and %d parts, want %d", len(p.sections), len(parts), len(sections))
	}
	for _, row := range []struct{ flags, want string }{
		{"--server third=/bin/third", "--server twice"},
		{"--rounds 0", "at least one round"},
		{"--sections calls,other", `no section "other"`},
		{"more", "nothing but flags"},
	} {
		if _, err := parseTable(append(given, strings.Fields(row.flags)...)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.flags, err, row.want)
		}
	}
}

func TestParsePictures(t *testing.T) {
	given := []string{"--server", "etcd=/bin/etcd", "--server", "ours=/bin/ours", "--dir", "data", "--out", "out"}
	p, err := parsePictures(append(given, "--clients", "1,8"))
	if err != nil {
		t.Fatal(err)
	}
	if text := p.command(); !strings.Contains(text, "--server ours=PATH --dir DIR --out DIR --clients 1,8 --rounds 3") {
		t.Errorf("the command is %q", text)
	}
	if _, err := parsePictures([]string{"--from", "bench.json", "--out", "out"}); err != nil {
		t.Errorf("from a file: %v", err)
	}
	for _, row := range []struct{ flags, want string }{
		{"--rounds 0", "at least one round"},
		{"--rate 0", "put a second"},
		{"--clients 0", "no number of clients"},
		{"--profile 10ms", "a second at least"},
		{"--compact-every 0", "not zero"},
		{"more", "nothing but flags"},
	} {
		if _, err := parsePictures(append(given, strings.Fields(row.flags)...)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.flags, err, row.want)
		}
	}
}
