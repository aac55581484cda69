package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/test/kubelet/box"
)

// An Image is what a container's name of an image stands for.
type Image struct {
	Mounts           []box.Mount
	Files            map[string]string
	Entrypoint       []string
	Command          []string
	Env              []string
	WorkingDirectory string
	UID              int
}

// Images are by name, with or without a tag: repository:tag, or repository for all tags. Registries and digests do not count.
type Images map[string]Image

// Quorate is the image of the release (release/image.go) with a binary of the machine in it.
func Quorate(binary string) Image {
	image := Image{Entrypoint: []string{"/usr/local/bin/quorate"}, Files: map[string]string{
		"/etc/passwd": "root:x:0:0:root:/:/sbin/nologin\nquorate:x:65532:65532:quorate:/var/lib/quorate:/sbin/nologin\n",
		"/etc/group":  "root:x:0:\nquorate:x:65532:\n",
	}}
	for _, name := range []string{"quorate", "etcd", "etcdctl", "etcdutl"} {
		image.Mounts = append(image.Mounts, box.Mount{Source: binary, Target: "/usr/local/bin/" + name, ReadOnly: true})
	}
	return image
}

// Single is an image that has one static program and nothing else.
func Single(binary, name string) Image {
	return Image{Entrypoint: []string{"/" + name}, Mounts: []box.Mount{{Source: binary, Target: "/" + name, ReadOnly: true}}}
}

// Shell is an image with the programs of this machine.
func Shell() Image {
	image := Image{Command: []string{"/bin/sh"}, Files: map[string]string{"/etc/passwd": "root:x:0:0:root:/:/bin/sh\n"}}
	for _, directory := range []string{"/bin", "/lib", "/lib64", "/usr"} {
		image.Mounts = append(image.Mounts, box.Mount{Source: directory, Target: directory, ReadOnly: true})
	}
	return image
}

func (images Images) find(name string) (Image, error) {
	short, _, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], "@")
	repository, _, _ := strings.Cut(short, ":")
	for _, key := range []string{name, short, repository} {
		if image, ok := images[key]; ok {
			return image, nil
		}
	}
	return Image{}, fmt.Errorf("there is no image %s; there are %s", name, strings.Join(slices.Sorted(maps.Keys(images)),
		", "))
}
