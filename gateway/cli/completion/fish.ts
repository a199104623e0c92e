/** Completion for fish. */
import type { CommandModel, OptionModel } from './command-model.ts';

export function fishCompletion(name: string, models: readonly CommandModel[]): string {
  const paths = models.filter((model) => model.path !== '').map((model) => quote(model.path));
  return `# fish completion for ${name}; load with: ${name} completion fish | source
function __${name}_path
    set -l at ''
    for word in (commandline -opc)[2..-1]
        # What follows -- is somebody else's command.
        test "$word" = --; and break
        contains -- "$at/$word" ${paths.join(' ')}; and set at "$at/$word"
    end
    echo "$at"
end
function __${name}_at
    test (__${name}_path) = "$argv[1]"
end
complete -c ${name} -f
${models.flatMap((model) => lines(name, model)).join('\n')}
`;
}

function lines(name: string, model: CommandModel): string[] {
  const start = `complete -c ${name} -n ${quote(`__${name}_at '${model.path}'`)}`;
  const words = model.subcommands.map((word) => `${start} -a ${quote(word.text)} -d ${quote(word.description)}`);
  const options = model.options.map((option) => `${start}${optionFlags(option)} -d ${quote(option.description)}`);
  if (model.argument?.kind === 'file') return [...words, ...options, `${start} -F`];
  if (model.argument?.kind === 'words')
    return [...words, ...options, `${start} -a ${quote(model.argument.words.join(' '))}`];
  return [...words, ...options];
}

function optionFlags(option: OptionModel): string {
  const names = option.names.map((text) => (text.startsWith('--') ? ` -l ${text.slice(2)}` : ` -s ${text.slice(1)}`));
  const { value } = option;
  if (value === null) return names.join('');
  if (value.kind === 'file') return `${names.join('')} -r -F`;
  return `${names.join('')} -x${value.kind === 'words' ? ` -a ${quote(value.words.join(' '))}` : ''}`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
