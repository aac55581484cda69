// Command etcdprotos writes the descriptors of etcd's API, which other .proto files of this directory import, as a
// FileDescriptorSet to standard output: protoc reads it (--descriptor_set_in), and needs no copies of etcd's .proto files then.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/versionpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	set := new(descriptorpb.FileDescriptorSet)
	seen := map[string]bool{}
	// etcd imports these by other names than those by which they are registered.
	for path, file := range map[string]protoreflect.FileDescriptor{
		"etcd/api/mvccpb/kv.proto":         mvccpb.File_kv_proto,
		"etcd/api/authpb/auth.proto":       authpb.File_auth_proto,
		"etcd/api/versionpb/version.proto": versionpb.File_version_proto,
	} {
		add(set, seen, path, file)
	}
	add(set, seen, "rpc.proto", pb.File_rpc_proto)
	encoded, err := proto.Marshal(set)
	if err == nil {
		_, err = os.Stdout.Write(encoded)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcdprotos:", err)
		os.Exit(1)
	}
}

// add puts a file into the set by the name of path, after all files that it imports.
func add(set *descriptorpb.FileDescriptorSet, seen map[string]bool, path string, file protoreflect.FileDescriptor) {
	if seen[path] {
		return
	}
	seen[path] = true
	imports := file.Imports()
	for i := range imports.Len() {
		if imported := imports.Get(i).FileDescriptor; !imported.IsPlaceholder() {
			add(set, seen, imported.Path(), imported)
		}
	}
	described := protodesc.ToFileDescriptorProto(file)
	described.Name = &path
	set.File = append(set.File, described)
}
