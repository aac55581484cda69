package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quorate/quorate/test/kubelet/box"
	"github.com/quorate/quorate/test/kubelet/services"
)

var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (w *worker) containerSpec(name string) *corev1.Container {
	for _, list := range [][]corev1.Container{w.pod.Spec.InitContainers, w.pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// start starts a container; if it cannot, the container's status says why, and it is tried again.
func (w *worker) start(name string) {
	seen := w.life.Containers[name]
	api := w.api()
	if api == nil { // then what was read before has to do
		api = canceled
	}
	ctx, cancel := context.WithTimeout(api, callTime)
	defer cancel()
	spec, err := w.spec(ctx, w.containerSpec(name))
	if err != nil {
		seen.Failed(err.Error(), time.Now())
		return
	}
	log, err := os.OpenFile(w.node.Log(w.pod.Namespace, w.pod.Name, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		seen.Failed(err.Error(), time.Now())
		return
	}
	wrote := &output{path: log.Name()}
	wrote.from, err = log.Seek(0, io.SeekEnd)
	var process *box.Process
	if err == nil {
		process, err = box.Start(spec, w.sandbox.File, box.Streams{Out: log, Err: log})
	}
	log.Close()
	if err != nil {
		seen.Failed(err.Error(), time.Now())
		return
	}
	r := &run{process: process, as: spec, network: w.sandbox.File, ended: make(chan struct{})}
	wrote.ended = r.ended
	w.runs[name] = r
	w.written[name] = append(w.written[name][max(0, len(w.written[name])-1):], wrote)
	w.count.Add(1)
	seen.Began(fmt.Sprintf("process://%d", process.PID()), time.Now())
	probing, stop := context.WithCancel(context.Background())
	w.probe(probing, w.containerSpec(name), r)
	go func() {
		code := process.Wait()
		stop()
		if info, err := os.Stat(wrote.path); err == nil {
			wrote.to = info.Size()
		}
		w.count.Add(-1)
		close(r.ended)
		w.do(func() {
			if w.runs[name] == r {
				delete(w.runs, name)
				seen.Ended(code, time.Now())
				if code != 0 {
					seen.Reason = lastLine(w.node.Log(w.pod.Namespace, w.pod.Name, name))
				}
			}
		})
	}()
}

// spec says how a container of the pod runs.
func (w *worker) spec(ctx context.Context, c *corev1.Container) (box.Spec, error) {
	image, err := w.node.Images.find(c.Image)
	if err != nil {
		return box.Spec{}, err
	}
	e, err := w.environment(ctx, image, c)
	if err != nil {
		return box.Spec{}, err
	}
	spec := box.Spec{Root: filepath.Join(w.directory(), "roots", c.Name), Env: e.list(), Groups: w.groups(), UID: image.UID,
		Hostname:         hostname(w.pod),
		WorkingDirectory: image.WorkingDirectory, Files: map[string]string{}}
	if c.WorkingDir != "" {
		spec.WorkingDirectory = c.WorkingDir
	}
	spec.Mounts = append(spec.Mounts, image.Mounts...)
	for path, text := range image.Files {
		spec.Files[path] = text
	}
	spec.Files["/etc/resolv.conf"] = services.ResolvConf(w.node.DNS, w.pod.Namespace)
	spec.Files["/etc/hosts"] = fmt.Sprintf("127.0.0.1\tlocalhost\n%s\t%s\n", w.sandbox.Address, hostname(w.pod))
	spec.Files["/etc/hostname"] = hostname(w.pod) + "\n"
	for _, m := range c.VolumeMounts {
		source := w.volumes[m.Name]
		if below := m.SubPath + e.expand(m.SubPathExpr); below != "" {
			source = filepath.Join(source, below)
			if _, err := os.Stat(source); err != nil {
				if err := os.MkdirAll(source, 0o755); err != nil {
					return box.Spec{}, err
				}
			}
		}
		spec.Mounts = append(spec.Mounts, box.Mount{Source: source, Target: m.MountPath, ReadOnly: m.ReadOnly})
	}
	spec.Command = append(spec.Command, image.Entrypoint...)
	arguments := image.Command
	if c.Command != nil {
		spec.Command, arguments = nil, nil
	}
	if c.Args != nil {
		arguments = c.Args
	}
	for _, part := range append(append([]string{}, c.Command...), arguments...) {
		spec.Command = append(spec.Command, e.expand(part))
	}
	w.secure(&spec, c)
	return spec, os.MkdirAll(spec.Root, 0o755)
}

// secure applies what is honoured of security contexts.
func (w *worker) secure(spec *box.Spec, c *corev1.Container) {
	take := func(user, group *int64) {
		if user != nil {
			spec.UID = int(*user)
		}
		if group != nil {
			spec.GID = int(*group)
		}
	}
	if s := w.pod.Spec.SecurityContext; s != nil {
		take(s.RunAsUser, s.RunAsGroup)
	}
	if s := c.SecurityContext; s != nil {
		take(s.RunAsUser, s.RunAsGroup)
		spec.ReadOnly = s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem
	}
}

// stop ends a container: its preStop hook, SIGTERM, and SIGKILL after grace, counted from now.
func (w *worker) stop(name string, grace time.Duration) {
	r, seen := w.runs[name], w.life.Containers[name]
	if r == nil {
		return
	}
	seen.Stopping, seen.Ready = true, false
	hook := w.containerSpec(name).Lifecycle
	go func() {
		last := time.NewTimer(max(grace, time.Millisecond))
		defer last.Stop()
		if hook != nil && hook.PreStop != nil && hook.PreStop.Exec != nil {
			ctx, cancel := context.WithTimeout(context.Background(), grace)
			r.beside(ctx, hook.PreStop.Exec.Command, box.Streams{})
			cancel()
		}
		r.process.Signal(syscall.SIGTERM)
		select {
		case <-r.ended:
		case <-last.C:
			r.process.Signal(syscall.SIGKILL)
		}
	}()
}

// statusPatch sets the whole status of the pod with that id.
func statusPatch(uid types.UID, status corev1.PodStatus) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
}

// lastLine is the end of a log, for the status of a container that failed.
func lastLine(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	const enough = 1024
	if size, err := file.Seek(0, io.SeekEnd); err == nil {
		file.Seek(max(0, size-enough), io.SeekStart)
	}
	text, err := io.ReadAll(io.LimitReader(file, enough))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
