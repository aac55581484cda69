package dev_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/ctl/dev"
)

// far runs a cluster until it is up, and returns the last thing that a member was told about distances.
func far(t *testing.T, o dev.Options, out *story, member string) string {
	t.Helper()
	if err := runUntil(t, o, out, "ready after"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log, err := os.ReadFile(filepath.Join(o.Dir, member+".log"))
	if err != nil {
		t.Fatal(err)
	}
	_, told, _ := strings.Cut(string(log[strings.LastIndex(string(log), `"starting"`):]), `"starting",`)
	told, _, _ = strings.Cut(told, "}")
	return told
}

// Ensure that members are told how far they are apart, that the next start remembers it, and that it can be changed.
func TestRun_geo(t *testing.T) {
	o, out := options(t, "live")
	for _, step := range []struct{ name, geo, told, words string }{
		{"one distance", "50ms", `"delay":"25ms","pace":"/"`, "simulating 50ms round trip between any two members, none to clients"},
		{"as before", "", `"delay":"25ms","pace":"/"`, "simulating 50ms round trip"},
		{"farther", "201ms", `"delay":"100.5ms","pace":"201/1005"`, "simulating 201ms"},
		{"sites in a directory of three", "regions", `"delay":"m1=34ms,m2=60.5ms","pace":"121/1000"`, "  m3 in eu        68  121    -\n"},
		{"off", "off", `"delay":"","pace":"/"`, ""},
		{"off as before", "", `"delay":"","pace":"/"`, ""},
	} {
		o.Geo, out = step.geo, &story{}
		o.Out = out
		if got := far(t, o, out, "m3"); got != step.told {
			t.Errorf("%s: m3 was told %s, want %s", step.name, got, step.told)
		}
		if got := out.String(); !strings.Contains(got, step.words) || strings.Contains(got, "simulating") != (step.words != "") {
			t.Errorf("%s: said %q, want %q", step.name, got, step.words)
		}
	}
}

// Ensure that sites have as many members as there are, and give them their names for good.
func TestRun_geoRegions(t *testing.T) {
	o, out := options(t, "live")
	o.Geo = "regions"
	told := far(t, o, out, "sa")
	if want := `"delay":"us-east=57ms,us-west=87.5ms,eu=89ms,ap=129ms","pace":"258/1290"`; told != want {
		t.Errorf("sa was told %s, want %s", told, want)
	}
	out.wants(t, "starting 5 members", "round trips between members in ms, none to clients; --geo off ends it",
		"           us-east  us-west       eu       ap       sa\n  us-east        -       65       68      148      114\n",
		"5 members ready after", "quorate latency\n")
	o.Geo, out = "10ms", &story{}
	o.Out = out
	if got, want := far(t, o, out, "sa"), `"delay":"5ms","pace":"/"`; got != want {
		t.Errorf("near each other: sa was told %s, want %s", got, want)
	}
}

func TestRun_geoRefusals(t *testing.T) {
	for _, row := range []struct {
		geo     string
		members int
		want    string
	}{
		{"far", 0, `--geo "far": give the round trip between any two members, such as 50ms, or regions, or off`},
		{"50", 0, `--geo "50": give the round trip`},
		{"3s", 0, "--geo 3s: choose a round trip of at most 2s"},
		{"-1ms", 0, "--geo -1ms: choose"},
		{"regions", 6, "--geo regions has 5 sites (us-east, us-west, eu, ap, sa), which is too few for 6 members"},
	} {
		o, _ := options(t, "live")
		o.Geo, o.Members = row.geo, row.members
		if err := dev.Run(t.Context(), o); !errors.Is(err, dev.ErrPlan) || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s, %d members: got %v, want %s…", row.geo, row.members, err, row.want)
		}
	}
	o, out := options(t, "live")
	o.Members = 6
	far(t, o, out, "m6")
	o.Geo = "regions"
	if err := dev.Run(t.Context(), o); !errors.Is(err, dev.ErrPlan) || !strings.Contains(err.Error(), "too few for 6") {
		t.Errorf("six that are there already: got %v", err)
	}
}
