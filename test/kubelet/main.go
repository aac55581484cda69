// Command kubelet runs Quorate on Kubernetes without machines, images or a container runtime: a real control plane, whose
// etcd is Quorate, three nodes whose containers are processes of this machine, and scenarios on them with writes running.
// See README.md.
package main

import (
	"context"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/quorate/quorate/test/kubelet/box"
	"github.com/quorate/quorate/test/kubelet/node"
)

func main() {
	box.Main()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

// images are flags NAME=PATH: an image that has one static program.
type images map[string]string

func (i images) String() string { return "" }

func (i images) Set(text string) error {
	name, path, ok := strings.Cut(text, "=")
	if !ok || name == "" || path == "" {
		return errors.New("it must be NAME=PATH")
	}
	i[name] = path
	return nil
}

func run() error {
	extra := images{}
	quorate := flag.String("quorate", "",
		"binary of Quorate: the image quorate, and the etcd of the control plane (built by ./run)")
	binaries := flag.String("binaries", "",
		"directory of kube-apiserver, kube-controller-manager, kube-scheduler and kubectl (built by ./run)")
	directory := flag.String("dir", "", "directory for logs, disks and keys, which must be empty (default: a temporary one)")
	only := flag.String("only", ".", "scenarios whose names match")
	members := flag.Int("etcd-members", 1, "members of Quorate below the API server: 1 or 3")
	helm := flag.String("helm", "", "binary of Helm, for the scenarios of charts")
	charts := flag.String("charts", "", "directory of the charts, for the same")
	plugin := flag.String("plugin", "", "binary of kubectl-quorate, for the scenario of that")
	gateway := flag.String("s3", "", "binary of versitygw, a server of S3, for the scenarios of backups")
	docs := flag.String("docs", "", "directory of the documents, for the scenario that runs the commands of one")
	away := flag.Duration("away", time.Minute, "how long the API server is away in the scenario of that")
	list := flag.Bool("list", false, "print the names of the scenarios")
	flag.Var(extra, "image", "NAME=PATH: what an image stands for; may be repeated")
	flag.Usage = usage
	flag.Parse()
	matches, err := regexp.Compile(*only)
	switch {
	case err != nil:
		return fmt.Errorf("-only: %w", err)
	case *list:
		for _, s := range scenarios(*away) {
			fmt.Println(s.title())
		}
		return nil
	case *quorate == "" || *binaries == "":
		return errors.New("-quorate and -binaries are needed: ./run gives them")
	case *members != 1 && *members != 3:
		return errors.New("-etcd-members must be 1 or 3")
	}
	if err := allStatic(*quorate, *binaries, extra); err != nil {
		return err
	}
	if err := box.InWorld(); err != nil {
		return err
	}
	if err := os.Setenv("PATH", *binaries+":"+os.Getenv("PATH")); err != nil { // which kubectl is used
		return err
	}
	klog.SetLogger(klog.New(nil)) // the client's own log: what fails is told here
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if *directory == "" {
		if *directory, err = os.MkdirTemp("", "quorate-kubelet."); err != nil {
			return err
		}
	}
	table := node.Images{"quorate": node.Quorate(*quorate), "busybox": node.Shell()}
	for name, path := range extra {
		table[name] = image(name, path)
	}
	began := time.Now()
	ground, err := startGround(ctx, groundOptions{directory: *directory, binaries: *binaries, quorate: *quorate,
		members: *members, images: table, helmPath: *helm, charts: *charts, plugin: *plugin, gateway: *gateway,
		docs: *docs})
	if err != nil {
		return err
	}
	defer ground.stop()
	fmt.Fprintf(os.Stderr, "control plane and %d nodes after %.1f s; files are in %s\n", nodes, time.Since(began).Seconds(),
		*directory)
	if flag.NArg() > 0 {
		return ground.command(ctx, flag.Args())
	}
	return perform(ctx, ground, *away, matches)
}

// allStatic tells which program of the ground needs libraries, which containers have none of.
func allStatic(quorate, binaries string, extra images) error {
	for _, path := range append([]string{quorate, filepath.Join(binaries, "kube-apiserver")},
		slices.Collect(maps.Values(extra))...) {
		if err := static(path); err != nil {
			return err
		}
	}
	return nil
}

// image is Quorate's of another build, if the name says so, or that of another program.
func image(name, path string) node.Image {
	if strings.HasPrefix(name, "quorate:") {
		return node.Quorate(path)
	}
	repository, _, _ := strings.Cut(name, ":")
	return node.Single(path, repository)
}

// static says why a file is no program that runs in a root of its own, where no libraries are.
func static(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s must be an absolute path", path)
	}
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s must be a program for Linux: %w", path, err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs libraries, which a container has not: build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}

func usage() {
	fmt.Fprintln(os.Stderr, `usage: run [FLAG…]              the scenarios, and their table
       run [FLAG…] COMMAND…     a command while the ground is up: KUBECONFIG names its API, names of services resolve`)
	flag.PrintDefaults()
}
