package charts_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	release "helm.sh/helm/v4/pkg/release/v1"
)

const (
	user     = 1001 // of the pods, as the chart and the former one have it
	patience = 90 * time.Second
)

// ground runs the containers of rendered pods as processes: each in a root directory that has what the image has, as the user of
// the pod, with its command and environment, its claim and its Secrets. All have the network of this machine: a pod has an address
// of its own in 127/8, which stands for 0.0.0.0, and names are in /etc/hosts.
type ground struct {
	t       *testing.T
	dir     string
	network string // 127.A.B
	hosts   map[string]string
	secrets map[string]map[string]string // by name and key
	quorate string
	running []*pod
}

func newGround(t *testing.T) *ground {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("it changes the root directory and the user of processes: run it as root")
	}
	dir, err := os.MkdirTemp("", "quorate-charts")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, dir: dir, network: fmt.Sprintf("127.%d.%d", 1+rand.IntN(250), rand.IntN(250)), hosts: map[string]string{},
		secrets: map[string]map[string]string{}, quorate: os.Getenv("QUORATE_BINARY")}
	t.Cleanup(func() {
		for _, p := range g.running {
			p.kill(syscall.SIGKILL)
			if t.Failed() {
				t.Logf("the end of the log of %s:\n%s", p.name, p.tail())
			}
		}
		os.RemoveAll(dir)
	})
	if g.quorate == "" {
		g.quorate = filepath.Join(dir, "quorate")
		build := exec.Command("go", "build", "-o", g.quorate, "./cmd/quorate")
		build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build quorate: %v\n%s", err, out)
		}
	}
	return g
}

// pod is one that runs, or ran.
type pod struct {
	ground  *ground
	name    string
	root    string
	address string
	cmd     *exec.Cmd
	exited  chan struct{}
}

// number gives a pod of a StatefulSet its address and its names.
func (g *ground) number(set string, n int) (name, address string) {
	name, address = fmt.Sprintf("%s-%d", set, n), fmt.Sprintf("%s.%d", g.network, n+1)
	g.hosts[fmt.Sprintf("%s.%s-headless.%s.svc.cluster.local", name, set, namespace)] = address
	if n == 0 {
		g.hosts[fmt.Sprintf("%s.%s.svc.cluster.local", set, namespace)] = address
	}
	return name, address
}

// container is what a pod runs.
type container struct {
	program string // on this machine
	words   []string
	env     []string
	claim   string            // where the claim is
	secrets map[string]string // by the directory into which they are mounted
}

// claim is the directory of a pod's claim.
func (g *ground) claim(name string) string { return filepath.Join(g.dir, "claims", "data-"+name) }

// start starts a container; its root directory is made anew, and the claim stays.
func (g *ground) start(name, address string, c container) *pod {
	g.t.Helper()
	root := filepath.Join(g.dir, "roots", name)
	must := func(err error) {
		g.t.Helper()
		if err != nil {
			g.t.Fatal(err)
		}
	}
	claim := g.claim(name)
	if c.claim != "" {
		if inside := filepath.Join(root, c.claim); exists(inside) {
			must(os.Rename(inside, claim))
		}
	}
	must(os.RemoveAll(root))
	for _, below := range []string{"usr/local/bin", "etc", "tmp", "log"} {
		must(os.MkdirAll(filepath.Join(root, below), 0o755))
	}
	must(os.Chmod(filepath.Join(root, "tmp"), 0o1777))
	var hosts strings.Builder
	for host, at := range g.hosts {
		fmt.Fprintf(&hosts, "%s %s\n", at, host)
	}
	must(os.WriteFile(filepath.Join(root, "etc/hosts"), []byte(hosts.String()), 0o644))
	inside := "/usr/local/bin/" + filepath.Base(c.program)
	copyFile(g.t, c.program, filepath.Join(root, inside))
	for dir, secret := range c.secrets {
		g.mountSecret(filepath.Join(root, dir), secret)
	}
	if c.claim != "" {
		must(os.MkdirAll(filepath.Dir(filepath.Join(root, c.claim)), 0o755))
		must(os.MkdirAll(filepath.Dir(claim), 0o755))
		if !exists(claim) {
			must(os.Mkdir(claim, 0o755))
		}
		setGroup(g.t, claim)
		must(os.Rename(claim, filepath.Join(root, c.claim)))
	}
	log, err := os.OpenFile(filepath.Join(g.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(err)
	defer log.Close()
	cmd := &exec.Cmd{Path: inside, Args: append([]string{filepath.Base(inside)}, c.words...), Env: c.env, Dir: "/",
		Stdout: log, Stderr: log, SysProcAttr: &syscall.SysProcAttr{Chroot: root,
			Credential: &syscall.Credential{Uid: user, Gid: user, Groups: []uint32{user}}}}
	p := &pod{ground: g, name: name, root: root, address: address, cmd: cmd, exited: make(chan struct{})}
	must(cmd.Start())
	go func() { _ = cmd.Wait(); close(p.exited) }()
	g.running = append(g.running, p)
	return p
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// setGroup does to a volume what a kubelet does for fsGroup.
func setGroup(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode()&os.ModeSymlink != 0 {
			return err
		}
		if err := os.Lchown(path, -1, user); err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o660
		if d.IsDir() {
			mode = info.Mode().Perm() | 0o770 | os.ModeSetgid
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// mountSecret lays out a Secret as a kubelet does: files are links into a directory that is replaced as a whole.
func (g *ground) mountSecret(dir, name string) {
	g.t.Helper()
	files, known := g.secrets[name]
	if !known {
		g.t.Fatalf("the Secret %s, which is mounted at %s, is not there", name, dir)
	}
	real := filepath.Join(dir, "..2026_11_30")
	if err := os.MkdirAll(real, 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Symlink("..2026_11_30", filepath.Join(dir, "..data")); err != nil {
		g.t.Fatal(err)
	}
	for key, text := range files {
		path := filepath.Join(real, key)
		if err := os.WriteFile(path, []byte(text), 0o440); err != nil {
			g.t.Fatal(err)
		}
		if err := os.Chown(path, 0, user); err != nil {
			g.t.Fatal(err)
		}
		if err := os.Symlink("..data/"+key, filepath.Join(dir, key)); err != nil {
			g.t.Fatal(err)
		}
	}
}

func (p *pod) tail() string {
	data, _ := os.ReadFile(filepath.Join(p.ground.dir, p.name+".log"))
	return string(data[max(0, len(data)-4000):])
}

func (p *pod) kill(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal)
	<-p.exited
}

// stop ends a pod as a kubelet does, with time enough to hand leadership over.
func (p *pod) stop() {
	p.ground.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.ground.t.Fatalf("%s does not end", p.name)
	}
}

// until waits for something.
func (g *ground) until(what string, done func(context.Context) bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !done(ctx) {
		select {
		case <-ctx.Done():
			g.t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

// probe asks what the kubelet asks, and returns the status and what the member says.
func (p *pod) probe(ctx context.Context, path string) (int, string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+":9090"+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	return answer.StatusCode, string(text)
}

func (p *pod) awaitReady() {
	p.ground.t.Helper()
	p.ground.until(p.name+" is ready", func(ctx context.Context) bool {
		status, _ := p.probe(ctx, "/readyz")
		return status == http.StatusOK
	})
}

// awaitSays waits until a pod is alive, not ready, and says why.
func (p *pod) awaitSays(words string) {
	p.ground.t.Helper()
	p.ground.until(p.name+" says "+words, func(ctx context.Context) bool {
		live, _ := p.probe(ctx, "/livez")
		ready, text := p.probe(ctx, "/readyz")
		return live == http.StatusOK && ready == http.StatusServiceUnavailable && strings.Contains(text, words)
	})
}

// startMember starts a pod of the StatefulSet of a release.
func (g *ground) startMember(r *release.Release, n int) *pod {
	g.t.Helper()
	set := statefulSet(g.t, r)
	name, address := g.number(nameOf(set), n)
	spec := set["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	c := g.containerOf(spec, map[string]string{"metadata.name": name})
	for i, v := range c.env {
		c.env[i] = strings.ReplaceAll(v, "//0.0.0.0:", "//"+address+":")
	}
	return g.start(name, address, c)
}

// runJob runs a job of a release, and returns its status and output.
func (g *ground) runJob(r *release.Release, name string) (status int, output string) {
	g.t.Helper()
	for _, h := range r.Hooks {
		if !strings.HasSuffix(h.Name, "-"+name) {
			continue
		}
		object := objectsOf(g.t, h.Manifest)[0]
		spec := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		p := g.start(h.Name, "", g.containerOf(spec, nil))
		select {
		case <-p.exited:
		case <-time.After(patience):
			g.t.Fatalf("the job %s does not end", h.Name)
		}
		said := p.tail()
		_ = os.Remove(filepath.Join(g.dir, h.Name+".log"))
		return p.cmd.ProcessState.ExitCode(), said
	}
	g.t.Fatalf("the release has no job %s", name)
	return 0, ""
}

var reference = regexp.MustCompile(`\$\(([A-Z_]+)\)`)

// containerOf reads the first container of a pod as a kubelet does.
func (g *ground) containerOf(spec map[string]any, fields map[string]string) container {
	g.t.Helper()
	first := spec["containers"].([]any)[0].(map[string]any)
	c := container{program: g.quorate, secrets: map[string]string{}}
	if command := fmt.Sprint(first["command"]); command != "[quorate]" {
		g.t.Fatalf("the container runs %s", command)
	}
	if words, any := first["args"].([]any); any {
		for _, word := range words {
			c.words = append(c.words, word.(string))
		}
	}
	values := map[string]string{}
	for _, v := range first["env"].([]any) {
		variable := v.(map[string]any)
		name := variable["name"].(string)
		text, _ := variable["value"].(string)
		if from, any := variable["valueFrom"].(map[string]any); any {
			text = g.valueFrom(from, fields)
		}
		values[name] = reference.ReplaceAllStringFunc(text, func(ref string) string { return values[ref[2:len(ref)-1]] })
		c.env = append(c.env, name+"="+values[name])
	}
	sources := map[string]map[string]any{}
	for _, v := range asList(spec["volumes"]) {
		sources[v.(map[string]any)["name"].(string)] = v.(map[string]any)
	}
	for _, m := range asList(first["volumeMounts"]) {
		mount := m.(map[string]any)
		name, path := mount["name"].(string), mount["mountPath"].(string)
		if secret, any := sources[name]["secret"].(map[string]any); any {
			c.secrets[path] = secret["secretName"].(string)
		}
		if name == "data" {
			c.claim = path
		}
	}
	return c
}

func asList(v any) []any { list, _ := v.([]any); return list }

func (g *ground) valueFrom(from map[string]any, fields map[string]string) string {
	g.t.Helper()
	if field, any := from["fieldRef"].(map[string]any); any {
		return fields[field["fieldPath"].(string)]
	}
	ref := from["secretKeyRef"].(map[string]any)
	text, known := g.secrets[ref["name"].(string)][ref["key"].(string)]
	if !known && ref["optional"] != true {
		g.t.Fatalf("no key %v in the Secret %v", ref["key"], ref["name"])
	}
	return text
}

// keepSecrets takes the Secrets of a release.
func (g *ground) keepSecrets(r *release.Release) {
	g.t.Helper()
	for _, object := range objectsOf(g.t, r.Manifest) {
		if object["kind"] != "Secret" {
			continue
		}
		files := map[string]string{}
		for key, value := range object["data"].(map[string]any) {
			text, err := base64.StdEncoding.DecodeString(value.(string))
			if err != nil {
				g.t.Fatal(err)
			}
			files[key] = string(text)
		}
		g.secrets[nameOf(object)] = files
	}
}

// exec runs a command of quorate in the container of a pod, as `kubectl exec` does, with the user root.
func (p *pod) exec(password string, words ...string) string {
	p.ground.t.Helper()
	cmd := &exec.Cmd{Path: p.cmd.Path, Args: append([]string{"quorate"}, words...), Dir: "/", SysProcAttr: p.cmd.SysProcAttr,
		Env: append(slices.Clone(p.cmd.Env), "QUORATE_USER=root", "QUORATE_PASSWORD="+password)}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.ground.t.Errorf("in %s: quorate %s: %v\n%s", p.name, strings.Join(words, " "), err, out)
	}
	return string(out)
}

// client connects to pods.
func (g *ground) client(password string, pods ...*pod) *clientv3.Client {
	g.t.Helper()
	config := clientv3.Config{Logger: zap.NewNop(), DialTimeout: 5 * time.Second}
	if password != "" {
		config.Username, config.Password = "root", password
	}
	for _, p := range pods {
		config.Endpoints = append(config.Endpoints, "http://"+p.address+":2379")
	}
	var client *clientv3.Client
	g.until("a client connects", func(context.Context) (ok bool) {
		var err error
		client, err = clientv3.New(config)
		return err == nil
	})
	g.t.Cleanup(func() { client.Close() })
	return client
}

// run runs a command of quorate on this machine against pods.
func (g *ground) run(password string, at *pod, words ...string) string {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), g.quorate, words...)
	cmd.Env = []string{"QUORATE_ENDPOINTS=http://" + at.address + ":2379"}
	if password != "" {
		cmd.Env = append(cmd.Env, "QUORATE_USER=root", "QUORATE_PASSWORD="+password)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		g.t.Fatalf("quorate %s: %v\n%s", strings.Join(words, " "), err, out.String())
	}
	return out.String()
}
