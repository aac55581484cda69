package process_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/doctor"
)

// matrix is where `make doctor` writes the table of docs/doctor.md.
var matrix = flag.String("doctor-matrix", "", "write the table of faults and verdicts into this document")

const (
	// doctorPatience is how long a fault may take until the verdict is of it: longer than a window.
	doctorPatience = 100 * time.Second
	matrixBegin    = "<!-- matrix -->\n"
	matrixEnd      = "<!-- /matrix -->"
)

// verdict is what `quorate doctor -o json` prints, as far as tests look at it.
type verdict struct {
	Answered int
	Findings []doctor.Finding
	status   int
}

// askDoctor runs the command against members.
func askDoctor(binary, mutes string, endpoints []string, more ...string) (v verdict, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, binary, append([]string{"doctor", "-o", "json", "--timeout=3s", "--mutes=" + mutes,
		"--endpoints=" + strings.Join(endpoints, ",")}, more...)...)
	out, err := command.Output()
	v.status = command.ProcessState.ExitCode()
	if len(out) == 0 {
		return v, fmt.Errorf("it says nothing, and ends with %w", err)
	}
	return v, json.Unmarshal(out, &v)
}

// doctor runs the command against all members.
func (c *cluster) doctor(more ...string) verdict {
	c.t.Helper()
	var endpoints []string
	for _, n := range c.nodes {
		endpoints = append(endpoints, n.client)
	}
	v, err := askDoctor(c.binary, filepath.Join(c.t.TempDir(), "mutes"), endpoints, more...)
	if err != nil {
		c.t.Logf("doctor: %v", err)
	}
	return v
}

func (v *verdict) String() string {
	var lines []string
	for _, f := range v.Findings {
		lines = append(lines, fmt.Sprintf("%d %s (%s) %s", f.Severity, f.Code, f.Because, f.Sentence))
	}
	return fmt.Sprintf("status %d\n%s", v.status, strings.Join(lines, "\n"))
}

// ailment is a fault that is injected into real processes.
type ailment struct {
	name    string
	size    int // of the cluster; zero: three
	flags   []string
	flagsOf map[int][]string // of single members, by their numbers from 1
	dress   func(c *cluster) // changes how members are started
	inject  func(c *cluster)
	code    doctor.Code
	status  int
	words   string      // of the first sentence
	also    doctor.Code // that another finding must have; empty: any may
}

var calm = []string{"--heartbeat-interval=100", "--election-timeout=1000"}

// outcomes are the codes that came first, by fault, for the table.
var outcomes = struct {
	sync.Mutex
	rows map[string]string
}{rows: map[string]string{}}

// always are the faults that are injected with all other tests: they take seconds. `make doctor` injects all, for minutes.
var always = []string{"a follower is killed", "two of three are killed", "the store reaches its quota", "a member is marked corrupt",
	"two zones", "a certificate near its end"}

// TestDoctor_faults injects faults into real processes, and looks at the first finding.
func TestDoctor_faults(t *testing.T) {
	t.Parallel()
	all, known := slices.Concat(ailments, systemAilments), 0
	for _, a := range all {
		if slices.Contains(always, a.name) {
			known++
		} else if *matrix == "" {
			continue
		}
		t.Run(strings.ReplaceAll(a.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			runAilment(t, &a)
		})
	}
	if known != len(always) {
		t.Errorf("%d faults of %v are known", known, always)
	}
	if *matrix != "" {
		t.Cleanup(func() { writeMatrix(t, all) })
	}
}

// found reports whether a verdict is what is wanted.
func (a *ailment) found(v *verdict) bool {
	if len(v.Findings) == 0 || v.Findings[0].Code != a.code || !strings.Contains(v.Findings[0].Sentence, a.words) || v.status != a.status {
		return false
	}
	return a.also == "" || slices.ContainsFunc(v.Findings[1:], func(f doctor.Finding) bool { return f.Code == a.also })
}

func runAilment(t *testing.T, a *ailment) {
	size := a.size
	if size == 0 {
		size = 3
	}
	c := newCluster(t, size, append(slices.Clone(calm), a.flags...)...)
	for n, flags := range a.flagsOf {
		c.nodes[n-1].flags = flags
	}
	if a.dress != nil {
		a.dress(c)
	}
	for _, n := range c.nodes {
		c.start(n)
	}
	for _, n := range c.nodes {
		c.waitReady(n)
		c.waitPublished(n)
	}
	if a.inject != nil {
		a.inject(c)
	}
	var v verdict
	deadline := time.Now().Add(doctorPatience)
	for time.Now().Before(deadline) {
		v = c.doctor()
		if a.found(&v) {
			break
		}
		last(500 * time.Millisecond)
	}
	outcomes.Lock()
	defer outcomes.Unlock()
	outcomes.rows[a.name] = "-"
	if len(v.Findings) > 0 {
		outcomes.rows[a.name] = string(v.Findings[0].Code)
	}
	if !a.found(&v) {
		t.Fatalf("%s: want %s first, with %q, and status %d, and %q; got %v", a.name, a.code, a.words, a.status, a.also, &v)
	}
	t.Logf("%s: %s: %s", a.name, v.Findings[0].Code, v.Findings[0].Sentence)
}

// notInjected skips a fault that this system does not let be injected. `make doctor` fails instead: its table must have all.
func (c *cluster) notInjected(why error) {
	c.t.Helper()
	if *matrix != "" {
		c.t.Fatalf("not injected: %v", why)
	}
	c.t.Skip(why)
}

// writeMatrix writes which code came first into the document.
func writeMatrix(t *testing.T, all []ailment) {
	content, err := os.ReadFile(*matrix)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), matrixBegin)
	_, after, closed := strings.Cut(rest, matrixEnd)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", *matrix)
	}
	var table strings.Builder
	table.WriteString("| fault | wanted first | came first |\n|---|---|---|\n")
	for _, a := range all {
		if got := outcomes.rows[a.name]; got != "" {
			fmt.Fprintf(&table, "| %s | `%s` | `%s` |\n", a.name, a.code, got)
		}
	}
	var left []string
	for _, row := range doctor.Codes() {
		if !slices.ContainsFunc(all, func(a ailment) bool { return a.code == row.Code }) {
			left = append(left, "`"+string(row.Code)+"`")
		}
	}
	fmt.Fprintf(&table, "\nOnly the table tests have faults with the codes %s.\n", strings.Join(left, ", "))
	if err := os.WriteFile(*matrix, []byte(before+matrixBegin+table.String()+matrixEnd+after), 0o600); err != nil {
		t.Error(err)
	}
}

// TestDoctor_healthy wants nothing above advice of a cluster under load whose leader changes, nor of one that has just started.
func TestDoctor_healthy(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, calm...)
	client := c.connect(c.nodes...)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
	defer cancel()
	var load sync.WaitGroup
	for worker := range 4 {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("/load/%d/%d", worker, i%500)
				_, _ = client.Put(ctx, key, strings.Repeat("v", 100))
				_, _ = client.Get(ctx, key)
				last(5 * time.Millisecond) // as clients that do other things, too: tests beside this one need processors
			}
		})
	}
	moved, asked := false, 0
	for ctx.Err() == nil {
		v := c.doctor()
		asked++
		for _, f := range v.Findings {
			if f.Severity < doctor.Advice {
				t.Errorf("verdict %d: %v", asked, &v)
			}
		}
		if v.status != 0 || v.Answered != 3 {
			t.Errorf("verdict %d: status %d, %d answered", asked, v.status, v.Answered)
		}
		if !moved && asked > 5 {
			moved = true
			c.moveLeader()
		}
	}
	load.Wait()
	if asked < 8 || !moved {
		t.Errorf("%d verdicts, leader moved: %v", asked, moved)
	}
}

// TestDoctor_bundle wants the same verdict from a bundle, and one sentence about files that are none.
func TestDoctor_bundle(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, calm...)
	client := c.connect(c.nodes...)
	defer client.Close()
	const secret = "a-value-that-nobody-may-see"
	if _, err := client.Put(context.Background(), "a-key-that-nobody-may-see", secret); err != nil {
		t.Fatal(err)
	}
	c.nodes[2].kill()
	dir := t.TempDir()
	bundle := filepath.Join(dir, "b.tgz")
	var first verdict
	until(t, "a member is down", func(context.Context) bool {
		first = c.doctor("--bundle", bundle)
		return len(first.Findings) == 1 && first.Findings[0].Code == doctor.MemberDown
	})
	if again := c.doctor(bundle); again.String() != first.String() {
		t.Errorf("of the bundle: %v\nof the members: %v", &again, &first)
	}
	whole, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := exec.Command("tar", "-xzOf", bundle).Output()
	if err != nil || !strings.Contains(string(unpacked), "keys and values") {
		t.Fatalf("the bundle: %v, %d bytes", err, len(unpacked))
	}
	for _, word := range []string{secret, "a-key-that"} {
		if strings.Contains(string(unpacked), word) {
			t.Errorf("the bundle has %q", word)
		}
	}
	for name, row := range map[string]struct {
		content []byte
		want    string
	}{
		"cut":     {whole[:len(whole)/2], "is cut off"},
		"empty":   {nil, "is cut off"},
		"foreign": {[]byte("this is no bundle at all"), "is no bundle of"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, row.content, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(c.binary, "doctor", path).CombinedOutput()
		if err == nil || !strings.Contains(string(out), row.want) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// TestDoctor_mute wants a muted finding to be quiet until it gets worse.
func TestDoctor_mute(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, calm...)
	c.nodes[2].kill()
	mutes := filepath.Join(t.TempDir(), "mutes.json")
	run := func(words ...string) (string, int) {
		command := exec.Command(c.binary, append(words, "--mutes="+mutes)...)
		out, _ := command.CombinedOutput()
		return string(out), command.ProcessState.ExitCode()
	}
	endpoints := "--endpoints=" + c.nodes[0].client + "," + c.nodes[1].client
	until(t, "a member is down", func(context.Context) bool {
		out, status := run("doctor", endpoints)
		return status == 5 && strings.Contains(out, "MEMBER_DOWN")
	})
	if out, status := run("doctor", "mute", "DISK_SLOW", endpoints); status != 1 || !strings.Contains(out, "nothing to mute") {
		t.Errorf("status %d: %s", status, out)
	}
	if out, status := run("doctor", "mute", "MEMBER_DOWN", "--for=1h", endpoints); status != 0 {
		t.Fatalf("status %d: %s", status, out)
	}
	if out, status := run("doctor", endpoints); status != 0 || !strings.Contains(out, "muted: MEMBER_DOWN") {
		t.Errorf("muted: status %d: %s", status, out)
	}
	if out, status := run("doctor", "mutes"); status != 0 || !strings.Contains(out, "MEMBER_DOWN") || !strings.Contains(out, "m3") {
		t.Errorf("mutes: status %d: %s", status, out)
	}
	c.nodes[1].kill() // now nothing can be written
	until(t, "the mute ends", func(context.Context) bool {
		out, status := run("doctor", endpoints)
		return status == 5 && strings.Contains(out, "NO_QUORUM")
	})
}

// TestDoctor_offline wants the directory with the most recent log, and refuses that of a running member.
func TestDoctor_offline(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, calm...)
	c.put(c.nodes[0], "k", "1")
	n := c.leaderFirst()
	n[2].kill()
	for i := range 20 {
		c.put(n[0], fmt.Sprintf("k%d", i), "1")
	}
	dirs := []string{n[2].dir, n[0].dir}
	out, err := exec.Command(c.binary, append([]string{"doctor", "--offline"}, dirs...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is in use by another process") {
		t.Errorf("of a running member: %v, %s", err, out)
	}
	n[0].kill()
	out, err = exec.Command(c.binary, append([]string{"doctor", "--offline"}, dirs...)...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), n[0].name+" ("+n[0].dir+") has the most recent log") ||
		!strings.Contains(string(out), "2 of 3 voters are here, a majority") {
		t.Errorf("of two: %v, %s", err, out)
	}
	out, err = exec.Command(c.binary, "doctor", "--offline", n[2].dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "quorate recover --data-dir "+n[2].dir+" --dry-run") ||
		!strings.Contains(string(out), "look for the directories of the others first") {
		t.Errorf("of one: %v, %s", err, out)
	}
}

// freeAddress is one that other machines reach.
func anyAddress(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	return "0.0.0.0:" + port
}
