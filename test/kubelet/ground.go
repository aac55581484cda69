package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/quorate/quorate/test/kubelet/claims"
	"github.com/quorate/quorate/test/kubelet/network"
	"github.com/quorate/quorate/test/kubelet/node"
	"github.com/quorate/quorate/test/kubelet/plane"
	"github.com/quorate/quorate/test/kubelet/services"
)

type groundOptions struct {
	directory, binaries, quorate string
	members                      int
	images                       node.Images
	helmPath, charts             string // for the scenarios of charts; empty if there is none
	plugin                       string // kubectl-quorate; the same
	docs                         string // the directory of the documents; the same
}

// A ground is a control plane with three nodes, and more while a scenario wants them.
type ground struct {
	directory string
	quorate   string
	plane     *plane.Plane
	network   *network.Network
	nodes     []*node.Node
	apply     *applier
	cancel    context.CancelFunc
	said      sync.Map
	images    node.Images
	helmPath  string
	charts    string
	plugin    string
	docs      string

	operatorInstalled bool
}

const nodes = 3

func startGround(ctx context.Context, o groundOptions) (*ground, error) {
	ctx, cancel := context.WithCancel(ctx)
	g := &ground{directory: o.directory, quorate: o.quorate, cancel: cancel, images: o.images,
		helmPath: o.helmPath, charts: o.charts, plugin: o.plugin, docs: o.docs}
	net, err := network.New(plane.ServiceRange)
	if err != nil {
		return nil, err
	}
	g.network = net
	g.plane, err = plane.Start(ctx, plane.Options{Directory: filepath.Join(o.directory, "plane"), Binaries: o.binaries,
		Quorate: o.quorate,
		Members: o.members, Address: net.Address})
	if err != nil {
		return nil, err
	}
	client := g.plane.Client
	if err := until(ctx, time.Minute, "the namespace default is there", func() error {
		_, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return nil, err
	}
	if err := claims.Install(ctx, client); err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	table := services.NewTable(factory)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := services.ServeDNS(net.Address, table); err != nil {
		return nil, err
	}
	go services.Proxy(ctx, table)
	go claims.Run(ctx, client, g.root, g.say)
	if err := resolve(o.directory, net.Address); err != nil {
		return nil, err
	}
	if g.apply, err = newApplier(g.plane.Config); err != nil {
		return nil, err
	}
	return g, g.grow(ctx, nodes)
}

// grow boots nodes until there are so many, and waits until they are ready.
func (g *ground) grow(ctx context.Context, count int) error {
	for i := len(g.nodes); i < count; i++ {
		address := fmt.Sprintf("10.77.0.%d", 10+i)
		if err := g.network.AddAddress(address); err != nil {
			return err
		}
		name := fmt.Sprintf("node-%d", i)
		n := node.New(node.Options{Name: name, Zone: fmt.Sprintf("zone-%d", i), Address: address, Directory: g.root(name),
			Root: g.root, Client: g.plane.Client, Network: g.network, Images: g.images, DNS: g.network.Address,
			APIAddress: "10.96.0.1", Say: g.say})
		g.nodes = append(g.nodes, n)
		if err := n.Boot(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return until(ctx, time.Minute, "all nodes are ready", func() error { return g.nodesReady(ctx) })
}

// shrink takes away the nodes that a scenario has added, once their pods are gone.
func (g *ground) shrink(ctx context.Context) error {
	for len(g.nodes) > nodes {
		n := g.nodes[len(g.nodes)-1]
		all := g.plane.Client.CoreV1().Nodes()
		cordon := []byte(`{"spec":{"unschedulable":true}}`)
		if _, err := all.Patch(ctx, n.Name, types.StrategicMergePatchType, cordon, metav1.PatchOptions{}); err != nil {
			return err
		}
		err := until(ctx, time.Minute, n.Name+" is empty", func() error { return g.empty(ctx, n.Name) })
		if err != nil {
			return err
		}
		n.Kill()
		if err := errors.Join(n.Wipe(), all.Delete(ctx, n.Name, metav1.DeleteOptions{})); err != nil {
			return err
		}
		g.nodes = g.nodes[:len(g.nodes)-1]
	}
	return nil
}

// empty deletes the pods of a node. It has an error while there are some.
func (g *ground) empty(ctx context.Context, name string) error {
	pods, err := g.plane.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil || len(pods.Items) == 0 {
		return err
	}
	for _, p := range pods.Items {
		err := g.plane.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return fmt.Errorf("%d pods are there", len(pods.Items))
}

func (g *ground) nodesReady(ctx context.Context) error {
	all, err := g.plane.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := 0
	for _, n := range all.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0 {
				ready++
			}
		}
	}
	if ready < len(g.nodes) {
		return fmt.Errorf("%d of %d are", ready, nodes)
	}
	return nil
}

// restore switches all nodes on, and connects them, after a scenario that did not end as it should.
func (g *ground) restore(ctx context.Context) {
	for _, n := range g.nodes {
		n.Kill()
		if err := n.Boot(); err != nil {
			g.say("%s: %v", n.Name, err)
		}
		patch := []byte(`{"spec":{"unschedulable":false}}`)
		nodes := g.plane.Client.CoreV1().Nodes()
		_, err := nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			g.say("%s: %v", n.Name, err)
		}
	}
	if err := g.shrink(ctx); err != nil {
		g.say("%v", err)
	}
}

// root is where the disk of a node is, or the storage that all nodes reach.
func (g *ground) root(name string) string {
	if name == "" {
		return filepath.Join(g.directory, "network")
	}
	return filepath.Join(g.directory, "nodes", name)
}

// say tells each thing once.
func (g *ground) say(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	if len(text) > 300 {
		text = text[:300]
	}
	if _, known := g.said.LoadOrStore(text, true); !known {
		fmt.Fprintln(os.Stderr, text)
	}
}

func (g *ground) stop() {
	for _, n := range g.nodes {
		n.Kill()
	}
	g.cancel()
	g.plane.Stop()
}

// resolve makes this process, and what it starts, resolve names of the cluster. The mount is seen in this world alone.
func resolve(directory, server string) error {
	file := filepath.Join(directory, "resolv.conf")
	if err := os.WriteFile(file, []byte(services.ResolvConf(server, "")), 0o644); err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	return syscall.Mount(file, target, "", syscall.MS_BIND, "")
}

// until waits until a check has no error.
func until(ctx context.Context, limit time.Duration, what string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %v until %s: %w", limit, what, errors.Join(err))
		case <-ticker.C:
		}
	}
}

// environment is that of programs which use kubectl, with a kubeconfig.
func (g *ground) environment(kubeconfig string) []string {
	return append(os.Environ(), "KUBECONFIG="+kubeconfig, "GROUND="+g.directory)
}

// command runs a program of the user on the ground.
func (g *ground) command(ctx context.Context, arguments []string) error {
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = g.environment(g.plane.Kubeconfig)
	return command.Run()
}
