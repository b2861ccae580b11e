#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Puts what a cluster of one node needs into DIR/bin: Kubernetes built from the Go module proxy (some 20 minutes on two
# free cores, 3 GB), etcd and containerd from Debian's packages, unpacked. Installs nothing.
#
#	build.sh DIR [VERSION of Kubernetes]
set -eu
mkdir -p "$1/bin" "$1/source"
dir=$(CDPATH='' cd "$1" && pwd)
version=${2:-1.34.4}
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)

if ! [ -x "$dir/bin/etcd" ] || ! [ -x "$dir/bin/containerd" ]; then
	mkdir -p "$dir/debian"
	(cd "$dir/debian" && apt-get download etcd-server containerd)
	for package in "$dir"/debian/*.deb; do
		dpkg -x "$package" "$dir/debian"
	done
	cp "$dir"/debian/usr/bin/* "$dir/bin"
fi

[ "$(cat "$dir/version" 2>/dev/null)" = "$version" ] && exit
cp "$here/main.go" "$dir/source"
cd "$dir/source"
# The parts of Kubernetes are modules of their own, which its go.mod takes from its own tree.
mod=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's|.*"GoMod": "\(.*\)".*|\1|p')
{
	printf 'module cluster\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v%s\n' "$version"
	# one whose dependencies are no newer than those of Kubernetes
	printf 'require github.com/google/go-containerregistry v0.19.1\n\nreplace (\n'
	sed -n 's|^\(replace\)\?[[:space:]]*\(k8s\.io/[a-z-]*\) => \./staging.*|\2|p' "$mod" | while read -r part; do
		printf '\t%s => %s v0.%s\n' "$part" "$part" "${version#*.}"
	done
	echo ')'
} >go.mod
go mod tidy
go build -p 2 -ldflags '-s -w' -o "$dir/bin/kube" .
for name in kube-apiserver kube-controller-manager kube-scheduler kubelet registry; do
	ln -sf kube "$dir/bin/$name"
done
echo "$version" >"$dir/version"
