#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs INSIDE the default image (in a capsule as its user, or in a chroot): every language and tool
# that the image promises does something real, without the network. TAP on standard output, exit 1
# when anything failed. Works in a folder of its own under /tmp. Arguments: components that the image
# was built without (image.json, missing); what needs them is skipped.
set -u
missing=" $* " part=debian
work=$(mktemp -d /tmp/default-check.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
count=0 failed=0

# check NAME EXPECTED COMMAND...: its output must have a line EXPECTED (a glob), its status be 0.
check() {
    local name=$1 expected=$2 output status started=$EPOCHREALTIME line ok=no
    shift 2
    if [[ $missing == *" $part "* ]]; then
        count=$((count + 1))
        echo "ok $count - $name # SKIP this image was built without $part"
        return
    fi
    output=$("$@" 2>&1)
    status=$?
    while IFS= read -r line; do
        # shellcheck disable=SC2053
        [[ $line == $expected ]] && ok=yes
    done <<<"$output"
    count=$((count + 1))
    if [ "$status" = 0 ] && [ "$ok" = yes ]; then
        echo "ok $count - $name ($(awk "BEGIN {printf \"%.2f\", $EPOCHREALTIME - $started}") s)"
    else
        failed=$((failed + 1))
        echo "not ok $count - $name (status $status, expected '$expected')"
        printf '%s\n' "$output" | tail -20 | sed 's/^/# /'
    fi
}

file() { mkdir -p "$(dirname "$1")" && cat >"$1"; }

check 'python3 runs' 'hello 42' python3 -c 'print("hello", 6 * 7)'
check 'python3 -m venv makes a venv with pip' 'pip *' bash -c 'python3 -m venv v && v/bin/pip --version'
part=node
check 'node is 22' 'v22.*' node --version
part=npm
check 'npm works' '[0-9]*.[0-9]*.[0-9]*' npm --version
check 'npx is there' '[0-9]*.[0-9]*.[0-9]*' npx --version
part=node
file a.ts <<<'const n: number = 42; console.log(`typed ${n}`)'
check 'node runs a typed file' 'typed 42' node a.ts
part=npm
check 'npm init and a local package work' 'used local' bash -c '
    mkdir -p lib app && cd lib && npm init -y >/dev/null && echo "module.exports = \"local\"" >index.js
    cd ../app && npm init -y >/dev/null && npm install --offline --no-audit --no-fund ../lib >/dev/null &&
    node -e "console.log(\"used\", require(\"lib\"))"'

file hello/hello.csproj <<'E'
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net8.0</TargetFramework>
    <ImplicitUsings>enable</ImplicitUsings>
  </PropertyGroup>
</Project>
E
file hello/Program.cs <<'E'
using System.Text.Json;
Console.WriteLine($"net {Environment.Version.Major} " + JsonSerializer.Serialize(new { answer = 42 }));
E
export DOTNET_CLI_HOME=$work NUGET_PACKAGES=$work/nuget DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1
part=dotnet
check 'dotnet builds net8.0' '*0 Error(s)*' dotnet build hello -nodeReuse:false
check 'dotnet runs what it built on .NET 8' 'net 8 {"answer":42}' dotnet hello/bin/Debug/net8.0/hello.dll
check 'and so does its own program' 'net 8 {"answer":42}' hello/bin/Debug/net8.0/hello
check 'dotnet new makes a net8.0 console program' '*<TargetFramework>net8.0</TargetFramework>*' bash -c '
    dotnet new console -f net8.0 -o fresh --no-restore >new.txt 2>&1 || cat new.txt
    cat fresh/fresh.csproj'
check 'dotnet lists the runtime 8.0' 'Microsoft.NETCore.App 8.0.*' dotnet --list-runtimes

part=debian
file Hello.java <<'E'
public class Hello {
    public static void main(String[] a) { System.out.println("java " + Runtime.version().feature()); }
}
E
check 'javac and java 17' 'java 17' bash -c 'javac Hello.java && java Hello'

check 'git commits and clones' 'a commit' bash -c '
    git init -q -b main r && cd r && git config user.email a@example.org && git config user.name A &&
    echo x >x && git add x && git commit -q -m "a commit" && git clone -q . ../c && git -C ../c log --format=%s'
file m/main.c <<'E'
#include <stdio.h>
int main(void) { puts("made"); return 0; }
E
file m/Makefile <<<$'main: main.c\n\tgcc -Wall -o $@ $<\n'
check 'make and gcc' 'made' bash -c 'make -s -C m && m/main'
file cpp.cc <<<'#include <iostream>
int main() { std::cout << "c++\n"; }'
check 'g++' 'c++' bash -c 'g++ -o cpp cpp.cc && ./cpp'
check 'pandoc makes HTML' '*<h1*>Title</h1>*' bash -c 'printf "# Title\n\ntext\n" | pandoc -f markdown -t html'
check 'pandoc makes a Word file' '*docx*' bash -c 'echo "# T" | pandoc -f markdown -o t.docx && ls t.docx'
check 'ffmpeg makes a video' '*Duration: 00:00:01*' bash -c '
    ffmpeg -v error -f lavfi -i testsrc=duration=1:size=64x64:rate=5 -c:v libx264 -pix_fmt yuv420p t.mp4 </dev/null &&
    ffprobe t.mp4'
check 'curl reads a file' 'made for curl' bash -c 'echo made for curl >f.txt && curl -s "file://$PWD/f.txt"'
check 'the certificates of public servers are there' 'yes' bash -c '[ -s /etc/ssl/certs/ca-certificates.crt ] && echo yes'
check 'archives' 'in the archive' bash -c '
    echo in the archive >in.txt && zip -q z.zip in.txt && tar -cJf t.tar.xz in.txt && unzip -p z.zip && tar -tJf t.tar.xz >/dev/null'
check 'UTF-8 is the character set' 'é 1' python3 -c 'print("\u00e9", len("\u00e9"))'

echo "1..$count"
[ "$failed" = 0 ]
