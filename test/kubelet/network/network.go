// Package network gives pods addresses: a network namespace for each, with a link to one bridge of the machine. Pods reach
// each other and the machine, and the machine takes the addresses of services for its own.
package network

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	bridgeName = "pods"
	prefix     = 16
)

// A Network is a bridge with pods on it.
type Network struct {
	Address string // the machine's own, at which pods reach it
	bridge  *netlink.Bridge
	mu      sync.Mutex
	next    int
}

// A Sandbox is the network of one pod. It lasts until it is closed, whatever runs in it.
type Sandbox struct {
	Address string
	File    *os.File // the network namespace
	link    netlink.Link
}

// New makes the bridge. The range of services is routed to this machine.
func New(services string) (*Network, error) {
	n := &Network{Address: "10.77.0.1", bridge: &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName}}}
	if err := netlink.LinkAdd(n.bridge); err != nil {
		return nil, fmt.Errorf("a bridge cannot be made; does the kernel have them? %w", err)
	}
	own := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(n.Address), Mask: net.CIDRMask(prefix, 32)}}
	if err := errors.Join(netlink.AddrAdd(n.bridge, own), netlink.LinkSetUp(n.bridge)); err != nil {
		return nil, err
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, err
	}
	_, all, err := net.ParseCIDR(services)
	if err != nil {
		return nil, err
	}
	return n, netlink.RouteAdd(&netlink.Route{LinkIndex: loopback.Attrs().Index, Dst: all, Type: unix.RTN_LOCAL,
		Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST})
}

// AddAddress gives the machine another address of the network, such as that of a node. It may have it already.
func (n *Network) AddAddress(address string) error {
	return netlink.AddrReplace(n.bridge, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(32, 32)}})
}

// Sandbox makes a network for a pod, with an address that no pod had before.
func (n *Network) Sandbox() (*Sandbox, error) {
	n.mu.Lock()
	n.next++
	number := n.next
	n.mu.Unlock()
	s := &Sandbox{Address: fmt.Sprintf("10.77.%d.%d", 1+number/250, 1+number%250)}
	var err error
	if s.File, err = namespace(); err != nil {
		return nil, fmt.Errorf("a network namespace cannot be made: %w", err)
	}
	if err := s.connect(n, fmt.Sprintf("pod%d", number)); err != nil {
		return nil, errors.Join(fmt.Errorf("a pod cannot be connected: %w", err), s.File.Close())
	}
	return s, nil
}

func namespace() (*os.File, error) {
	type result struct {
		file *os.File
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, for it is in another namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- result{err: err}
			return
		}
		file, err := os.Open("/proc/thread-self/ns/net")
		done <- result{file, err}
	}()
	r := <-done
	return r.file, r.err
}

func (s *Sandbox) connect(n *Network, name string) error {
	fd := int(s.File.Fd())
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, MasterIndex: n.bridge.Index}, PeerName: "eth0",
		PeerNamespace: netlink.NsFd(fd)}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	s.link = pair
	inside, err := netlink.NewHandleAt(netns.NsHandle(fd))
	if err != nil {
		return err
	}
	defer inside.Close()
	loopback, err := inside.LinkByName("lo")
	if err != nil {
		return err
	}
	peer, err := inside.LinkByName("eth0")
	if err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(s.Address), Mask: net.CIDRMask(prefix, 32)}}
	if err := errors.Join(inside.LinkSetUp(loopback), inside.AddrAdd(peer, address), inside.LinkSetUp(peer)); err != nil {
		return err
	}
	gateway := &netlink.Route{LinkIndex: peer.Attrs().Index, Gw: net.ParseIP(n.Address)}
	return errors.Join(netlink.LinkSetUp(pair), inside.RouteAdd(gateway))
}

// Dial connects to a port at the loopback address of the pod.
func (s *Sandbox) Dial(port int) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // as in namespace
		if err := unix.Setns(int(s.File.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{err: err}
			return
		}
		conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// Connect connects the pod to the network again, or cuts it off.
func (s *Sandbox) Connect(connected bool) error {
	if connected {
		return netlink.LinkSetUp(s.link)
	}
	return netlink.LinkSetDown(s.link)
}

// Close removes the link. The namespace ends with the last process in it.
func (s *Sandbox) Close() error { return errors.Join(netlink.LinkDel(s.link), s.File.Close()) }
