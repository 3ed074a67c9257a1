# fish completion of mt: what may stand at the cursor is asked of mt itself (mt __complete).
# To use it at once: mt completion fish | source

function __mt_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l files no
    for line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)
        if test "$line" = :files
            set files yes
        else
            echo $line
        end
    end
    if test $files = yes
        __fish_complete_path (commandline -ct)
    end
end
complete -c mt -f -a '(__mt_complete)'
